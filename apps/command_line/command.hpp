// What a subcommand does when it is chosen, and the exit codes of the program.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "run/training/sweep.hpp"

namespace capstan {

/// Returns an exit code.
using Command = std::function<int()>;

/// Runs the command; turns exceptions into a message on stderr and an exit code. `before_message` is called first.
int run_command(const Command& command, const std::function<void()>& before_message = {});

/// Logs the runs that failed, of a command that trains several. Returns its exit code.
int report_failures(const std::vector<std::string>& failed);

}  // namespace capstan
