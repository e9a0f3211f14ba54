// A training run in a process of its own, for programs that train several: search.cpp trains by it.
#pragma once

#include <functional>
#include <string>

#include "run/training/train_run.hpp"

namespace capstan {

/// Exit codes of the program.
constexpr int exit_done = 0, exit_failed = 1, exit_wrong_usage = 2, exit_interrupted = 75;
/// Exit code after training.
inline int exit_code_of(const TrainResult& result) { return result.interrupted ? exit_interrupted : exit_done; }

/// Calls a function that returns an exit code, and turns its exceptions into messages and exit codes.
using Guard = std::function<int(const std::function<int()>& body)>;

/// How the process ended.
struct Ending {
  int code = -1;  // -1: ended by `signal`
  int signal = 0;
};

/// Trains the run in a process of its own: its memory is released when it ends, its peak memory is its own, and a crash
/// leaves the caller alone. The process is a plain fork: the caller must have started no thread and should hold little
/// data. `stop` is asked again and again whether the process should end; it then gets SIGTERM, as it does when the
/// caller ends. Throws Error, naming the run's folder, if no process can be started.
Ending train_in_child(const RunConfig& config, const TrainRunOptions& options, const Guard& guard,
                      const std::function<bool()>& stop);

/// "exit code 1", "ended by SIGKILL (possibly out of memory)".
std::string describe_ending(const Ending& ending);

}  // namespace capstan
