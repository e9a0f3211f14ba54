// Work in a process of its own, for programs that train several runs.
#pragma once

#include <functional>
#include <string>

namespace capstan {

/// How the process ended.
struct Ending {
  int code = -1;  // -1: ended by `signal`
  int signal = 0;
};

/// Runs `body`, which trains and returns an exit code, in a process of its own: its memory is released when it ends, its peak
/// memory is its own, and a crash leaves the caller alone. The process is a plain fork: the caller must have started no
/// thread and should hold little data. `stop` is asked again and again whether the process should end; it then gets
/// SIGTERM, as it does when the caller ends. Throws Error, naming `what` is run, if no process can be started.
Ending run_in_child(const std::function<int()>& body, const std::string& what, const std::function<bool()>& stop);

/// "exit code 1", "ended by SIGKILL (possibly out of memory)".
std::string describe_ending(const Ending& ending);

}  // namespace capstan
