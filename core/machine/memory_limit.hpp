// How much memory this process may have: run/setup refuses configurations that need more, before anything is read.
// tests/core/machine/test_memory_limit.cpp tries control groups of both versions.
#pragma once

#include <cstdint>
#include <string>

namespace capstan {

/// A limit of memory, and where the limit comes from.
struct MemoryLimit {
  uint64_t bytes = 0;
  /// The source: "this machine", "the control group /jobs/7", "ulimit -v". Communicator::sharing_memory()
  /// (train/ranks) compares it between ranks and knows limits of a process by the word "ulimit".
  std::string of;
};

/// The lowest of: the machine's memory; the limits of the control groups that this process is in (v1 and v2), with the
/// groups around them; RLIMIT_AS and RLIMIT_DATA. Swap does not count. Tests put `root` before /proc and /sys.
MemoryLimit memory_limit(const std::string& root = "");

/// The lower of memory_limit() and what the machine says is available (MemAvailable). What this process has taken
/// already is not subtracted from the limit.
uint64_t free_memory(const std::string& root = "");

/// Gives what is freed back to the system, and returns the bytes that this process then has, but for those of files.
uint64_t live_memory();

}  // namespace capstan
