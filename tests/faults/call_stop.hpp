// A system call that a traced process is stopped at.
#pragma once

#include <cstdint>
#include <string>

#include "tests/faults/system_calls.hpp"

namespace capstan::testing {

/// A call at the moment the kernel is about to make it, or has made it.
struct CallStop {
  const SystemCall* call = nullptr;
  int64_t count = 0;  // calls of the process's own so far, this one included; those of the dynamic loader do not count
  int64_t process = 0;
  uint64_t arguments[6] = {};
  int64_t result = 0;             // after the call: -errno for a failure
  std::string path, second_path;  // absolute; of a descriptor, its file. For symlink, the first is the target's text

  uint64_t stack = 0;  // pointer to the top

  /// The library or program that called the C library's function for this call, where that function keeps nothing on
  /// the stack, as mmap() does. While the process is stopped.
  std::string caller() const;
  /// Fills in the paths that the arguments name.
  void find_paths();
  /// From the memory of the process.
  std::string bytes(uint64_t address, size_t count) const;
};

}  // namespace capstan::testing
