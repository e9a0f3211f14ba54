// What a subcommand does when it is chosen, and the exit codes of the program.
#pragma once

#include <functional>

namespace capstan {

constexpr int exit_done = 0, exit_failed = 1, exit_wrong_usage = 2, exit_interrupted = 75;

/// Returns an exit code.
using Command = std::function<int()>;
/// Called with the function of the chosen command.
using Choose = std::function<void(Command)>;

/// Runs the command; turns exceptions into a message on stderr and an exit code. `before_message` is called first.
int run_command(const Command& command, const std::function<void()>& before_message = {});

}  // namespace capstan
