// How this library reports what went wrong. Library code throws; only apps/command_line turns exceptions into exit
// codes. tests/cli/inputs/test_bad_input.cpp holds which error has which exit code, and that messages name place and
// remedy.
#pragma once

#include <stdexcept>
#include <utility>

#include <fmt/core.h>

namespace capstan {

/// Something outside the program is wrong (a file, a data row, a disk):
/// the message names it and the remedy. Exit code 1.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The configuration or the command line is wrong: the message names the key and its place. Exit code 2.
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// What a model computes is not finite: its weights are damaged, or its training diverged.
class NotFinite : public Error {
 public:
  using Error::Error;
};

/// Throws std::invalid_argument with the formatted message unless `condition` holds. For arguments a caller got wrong:
/// the message starts with the op's name and shows the shapes.
template <class... Args>
void check(bool condition, fmt::format_string<Args...> message, Args&&... args) {
  if (!condition) throw std::invalid_argument(fmt::format(message, std::forward<Args>(args)...));
}

}  // namespace capstan
