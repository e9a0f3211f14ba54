// What the program says of a command line that it does not understand. tests/cli/inputs/test_bad_input.cpp.
#pragma once

#include <CLI/CLI.hpp>

namespace capstan {

/// Logs what is wrong, what was probably meant, an example, and where to read on; returns the exit code. Without a
/// command where one is needed, it prints the help instead.
int refuse_usage(const CLI::App& program, const CLI::ParseError& error);

}  // namespace capstan
