// One training run: for `capstan train`, sweeps, searches, replays and train() of run/run.hpp. What a run does must
// depend on its config.yaml and its checkpoint alone, so that it can be resumed and replayed with the same bits:
// tests/cli/training/test_interruption.cpp, test_replay.cpp and test_old_runs.cpp hold it.
#pragma once

#include <optional>
#include <ostream>
#include <string>

#include "run/setup/run_config.hpp"
#include "train/loop/session.hpp"
#include "train/loop/trainer.hpp"
#include "train/ranks/communicator.hpp"
#include "train/ranks/launch.hpp"

namespace capstan {

/// How a run is trained, besides its configuration.
struct TrainRunOptions {
  std::string resume_from;          // a checkpoint's folder instead of the last one
  int64_t profile_steps = 0;        // 0: no profile
  std::ostream* profile = nullptr;  // takes the profile
  bool quiet = false;               // only errors on the console, for one of many runs
  bool force = false;               // train even if the memory cannot be enough
  RankOptions ranks = {};
  bool mixed_kernels = false;                  // train even if ranks round differently
  bool settled = false;                        // the configuration is that of a trained run: nothing is chosen again
  std::optional<PieceEnd> end = std::nullopt;  // train a piece of the run only: for replays
};

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
