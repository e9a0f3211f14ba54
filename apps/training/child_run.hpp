// A training run in a process of its own, for commands that train several.
#pragma once

#include <functional>
#include <string>

#include "apps/training/train_run.hpp"

namespace capstan {

/// How the process of a run ended.
struct Ending {
  int code = -1;  // -1: ended by `signal`
  int signal = 0;
};

/// Trains a run in a process of its own: its memory is released when it ends, its peak memory is its own, and a crash
/// leaves the caller alone. It is a plain fork: the caller must have started no thread and should hold little data.
/// `stop` is asked again and again whether the run should save and end. Throws Error if no process can be started.
Ending run_in_child(const RunConfig& config, const TrainRunOptions& options, const std::function<bool()>& stop);

/// "exit code 1", "ended by SIGKILL (possibly out of memory)".
std::string describe_ending(const Ending& ending);

}  // namespace capstan
