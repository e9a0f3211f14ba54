// OutOfMemory is thrown when memory is refused; it says how much was wanted and for what, and takes no memory itself:
// its message is in a buffer of its own. tests/cli/inputs/test_bad_input.cpp.
#pragma once

#include <cstddef>
#include <new>

#include "core/base/no_copy.hpp"

namespace capstan {

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
