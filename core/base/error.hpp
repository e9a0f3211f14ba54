// How this library reports what went wrong. Library code throws; only apps/command_line turns exceptions into exit
// codes. tests/cli/inputs/test_bad_input.cpp holds which error has which exit code, and that messages name place and
// remedy.
#pragma once

#include <cstddef>
#include <new>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>

#include "core/base/no_copy.hpp"

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

// OutOfMemory is thrown when memory is refused; it says how much was wanted and for what, and takes no memory itself.

/// what(): "out of memory (wanted 512 MB for the model's parameters)".
class OutOfMemory : public std::bad_alloc {
 public:
  /// `purpose`: what the memory was for, a string literal, with a remedy after a colon if there is a special one; null:
  /// the purpose that MemoryFor has set on the calling thread.
  explicit OutOfMemory(size_t bytes, const char* purpose = nullptr) noexcept;
  const char* what() const noexcept override { return text_; }

 private:
  char text_[200];
};

/// Throws OutOfMemory unless the system gives so much memory now.
void check_available(size_t bytes, const char* purpose);

/// While it lives, an OutOfMemory of the calling thread says that the memory was wanted for `purpose`, a string literal
/// such as "the text of the training data". The innermost one counts.
class MemoryFor : NoCopy {
 public:
  explicit MemoryFor(const char* purpose) noexcept;
  ~MemoryFor();

 private:
  const char* outer_;
};

}  // namespace capstan
