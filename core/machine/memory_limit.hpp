// How much memory this process may have.
#pragma once

#include <cstdint>
#include <string>

namespace capstan {

struct MemoryLimit {
  uint64_t bytes = 0;
  std::string of;  // the source: "this machine", "the control group /jobs/7", "ulimit -v"
};

/// The lowest of: the machine's memory; the limits of the control groups that this process is in (v1 and v2), with the
/// groups around them; RLIMIT_AS and RLIMIT_DATA. Swap does not count. Tests put `root` before /proc and /sys.
MemoryLimit memory_limit(const std::string& root = "");

/// The memory that this process may still take without others having less: of the limit, no more than the machine says
/// is available.
uint64_t free_memory(const std::string& root = "");

}  // namespace capstan
