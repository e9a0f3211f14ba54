// How a run is trained, besides its configuration. tests/cli/runs/test_replay.cpp and
// tests/cli/training/test_ranks.cpp.
#pragma once

#include <optional>
#include <ostream>
#include <string>

#include "run/setup/run_config.hpp"
#include "train/loop/trainer.hpp"
#include "train/ranks/launch.hpp"

namespace capstan {

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

}  // namespace capstan
