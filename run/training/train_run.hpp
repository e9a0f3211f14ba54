// One training run: for `capstan train`, sweeps, searches, replays and train() of run/run.hpp. What a run does must
// depend on its config.yaml and its checkpoint alone, so that it can be resumed and replayed with the same bits:
// tests/cli/training/test_interruption.cpp, test_replay.cpp and test_old_runs.cpp hold it.
#pragma once

#include "run/training/train_options.hpp"
#include "train/loop/session.hpp"
#include "train/ranks/communicator.hpp"

namespace capstan {

/// Steps of the run before those that are profiled.
constexpr int64_t profile_warmup = 3;

/// Reads the data, makes the model and trains it in `<folder>/<name>`, together with all ranks.
TrainResult train_run(const RunConfig& config, const TrainRunOptions& options, Communicator& ranks);

/// Adds a problem for every file or folder of the data that does not exist.
void check_data_files(const RunConfig& config, Problems& problems);
/// As check_data_files(), and adds a problem for what the configuration needs and this machine does not have:
/// instructions for train.precision and, unless `force`, the memory of one of these ranks.
void check_trainable(const RunConfig& config, bool force, const Communicator& ranks, Problems& problems);
/// check_trainable() for a run that is not one of a sweep or a search: its folder must not be that of a search.
void check_single_run(const RunConfig& config, bool force, const Communicator& ranks, Problems& problems);

}  // namespace capstan
