// What a subcommand does when it is chosen, and how its errors become messages and exit codes
// (run/training/child_run.hpp has the codes, since sweeps see those of child processes). tests/apps/test_command.cpp
// holds codes and messages.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "run/training/child_run.hpp"

namespace capstan {

/// The body of a subcommand, which returns an exit code.
using Command = std::function<int()>;

/// Runs the command; turns exceptions into a message on stderr and an exit code. `before_message` is called before a
/// message is written.
int run_command(const Command& command, const std::function<void()>& before_message = {});

/// For a command that trains several runs: logs those that failed, and returns the command's exit code.
int report_failures(const std::vector<std::string>& failed);

}  // namespace capstan
