// /proc/self/cgroup names the groups of this process, below the mount of each version. In a container the names may be
// those of the host: then no file is found on the way, except at the outermost group, which is the container's own.
#include "core/machine/memory_limit.hpp"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>

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

/// Lowers `limit` to the lowest limit of `group` and of all groups around it, up to the outermost group "". `file` is
/// the name of the file in a group's folder that holds its limit.
void lower_by_groups(MemoryLimit& limit, const std::string& mount, std::string group, const char* file) {
  while (!group.empty() && group.back() == '/') group.pop_back();
  for (;;) {
    if (const auto bytes = number_in(mount + group + "/" + file))
      lower(limit, *bytes, "the control group " + (group.empty() ? "/" : group));
    if (group.empty()) return;
    group.erase(group.rfind('/'));
  }
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
  // Lines of the form number:controllers:group; the one of version 2 has no controllers.
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos || line.compare(second + 1, 1, "/") != 0) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",",
                      group = line.substr(second + 1);
    if (controllers == ",,") lower_by_groups(limit, root + "/sys/fs/cgroup", group, "memory.max");
    if (controllers.find(",memory,") != std::string::npos)
      lower_by_groups(limit, root + "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes");
  }
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
