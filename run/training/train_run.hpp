// One training run: for `capstan train`, sweeps, searches, replays and train() of run/run.hpp. What a run does must
// depend on its config.yaml and its checkpoint alone, so that it can be resumed and replayed with the same bits:
// tests/cli/training/test_interruption.cpp, test_replay.cpp and test_old_runs.cpp hold it. check_run.hpp has the
// checks.
#pragma once

#include <optional>
#include <ostream>
#include <string>

#include "run/setup/run_config.hpp"
#include "train/loop/session.hpp"
#include "train/loop/trainer.hpp"
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

}  // namespace capstan
