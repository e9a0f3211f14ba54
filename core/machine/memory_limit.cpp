// tests/core/machine/test_memory_limit.cpp.
#include "core/machine/memory_limit.hpp"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>

#include "core/machine/control_groups.hpp"
#include "core/machine/pool.hpp"

namespace capstan {
namespace {

/// The number that a file holds; none where it says "max" (no limit), and where there is no such file.
std::optional<uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

/// The number after `name` in a file of the system's figures in kB.
std::optional<uint64_t> bytes_in(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string word, rest; file >> word;) {
    uint64_t kilobytes = 0;
    if (word == name && file >> kilobytes) return kilobytes * 1024;
    std::getline(file, rest);
  }
  return std::nullopt;
}

void lower(MemoryLimit& limit, uint64_t bytes, const std::string& of) {
  if (bytes < limit.bytes) limit = {bytes, of};
}

void lower_by_resource(MemoryLimit& limit, decltype(RLIMIT_AS) resource, const char* name) {
  struct rlimit value {};
  if (getrlimit(resource, &value) == 0 && value.rlim_cur != RLIM_INFINITY) lower(limit, value.rlim_cur, name);
}

}  // namespace

MemoryLimit memory_limit(const std::string& root) {
  MemoryLimit limit{static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)),
                    "this machine"};
  lower_by_resource(limit, RLIMIT_AS, "ulimit -v");
  lower_by_resource(limit, RLIMIT_DATA, "ulimit -d");
  for_each_control_group(root, "memory", [&](const std::string& folder, const std::string& name) {
    for (const char* const file : {"/memory.max", "/memory.limit_in_bytes"})
      if (const auto bytes = number_in(folder + file)) lower(limit, *bytes, "the control group " + name);
  });
  return limit;
}

uint64_t free_memory(const std::string& root) {
  const uint64_t limit = memory_limit(root).bytes;
  return std::min(limit, bytes_in(root + "/proc/meminfo", "MemAvailable:").value_or(limit));
}

uint64_t live_memory() {
  pool::trim();
  malloc_trim(0);
  return bytes_in("/proc/self/status", "RssAnon:").value_or(0);
}

}  // namespace capstan
