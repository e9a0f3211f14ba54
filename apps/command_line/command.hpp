// A subcommand: options, and a function that takes them when the command line names the command. Its errors become
// messages and exit codes (run/training/child_run.hpp has the codes, since sweeps see those of child processes).
// tests/apps/test_command.cpp holds codes and messages.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "run/training/child_run.hpp"

namespace capstan {

/// The body of a subcommand, which returns an exit code.
using Command = std::function<int()>;

/// Runs the body when parsing has ended on this command. Another exit code than 0 becomes a CLI::RuntimeError.
void runs(CLI::App& command, const Command& body);

/// A new command and the struct that its options fill, which `body` takes. Both live as long as `program`.
template <class Options>
auto add_command(CLI::App& program, const std::string& name, const std::string& help, int (*body)(Options)) {
  using Struct = std::remove_cv_t<std::remove_reference_t<Options>>;
  const auto options = std::make_shared<Struct>();
  CLI::App& command = *program.add_subcommand(name, help);
  runs(command, [options, body] { return body(*options); });
  return std::pair<CLI::App&, Struct&>(command, *options);
}

/// Runs the command; turns exceptions into a message on stderr and an exit code. `before_message` is called before a
/// message is written.
int run_command(const Command& command, const std::function<void()>& before_message = {});

/// For a command that trains several runs: logs those that failed, and returns the command's exit code.
int report_failures(const std::vector<std::string>& failed);

}  // namespace capstan
