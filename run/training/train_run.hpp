// One training run: for `capstan train`, sweeps, searches, replays and train() of run/run.hpp. What a run does must
// depend on its config.yaml and its checkpoint alone, so that it can be resumed and replayed with the same bits:
// tests/cli/training/test_interruption.cpp, test_replay.cpp and test_old_runs.cpp hold it. check_run.hpp has the
// checks.
#pragma once

#include "run/training/train_options.hpp"
#include "train/loop/session.hpp"

namespace capstan {

/// Steps of the run before those that are profiled.
constexpr int64_t profile_warmup = 3;

/// Reads the data, makes the model and trains it in `<folder>/<name>`, together with all ranks.
TrainResult train_run(const RunConfig& config, const TrainRunOptions& options, Communicator& ranks);

}  // namespace capstan
