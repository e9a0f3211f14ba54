// Runs `capstan` on a terminal of a given width, and shows what would be on its screen.
#pragma once

#include <string>
#include <vector>

#include "tests/cli/support/program.hpp"

namespace capstan::testing {

/// Standard output and error of the program are one pseudo-terminal.
struct TerminalOutcome {
  int code = -1;
  std::string written;              // every byte that reached the terminal
  std::vector<std::string> screen;  // its lines at the end, scrolled ones included, blanks at their ends removed
};

TerminalOutcome run_on_terminal(const Workplace& place, const Words& arguments, int columns);

/// What a terminal of this width shows: line ends, carriage returns and "clear to the end of the line" are obeyed, long
/// lines go on in the next one. Other escape sequences stay visible.
std::vector<std::string> screen_of(const std::string& written, size_t columns);

}  // namespace capstan::testing
