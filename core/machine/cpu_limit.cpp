// tests/core/machine/test_cpu_limit.cpp.
#include "core/machine/cpu_limit.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <thread>

#include "core/machine/control_groups.hpp"

namespace capstan {
namespace {

int physical_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
    return static_cast<int>(std::thread::hardware_concurrency());
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    std::ifstream siblings("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list");
    std::string line;
    if (!std::getline(siblings, line)) line = std::to_string(cpu);
    cores.insert(line);
  }
  return std::max(1, static_cast<int>(cores.size()));
}

}  // namespace

int cpu_limit(const std::string& root) {
  double limit = physical_cores();
  for_each_control_group(root, "cpu", [&](const std::string& folder, const std::string&) {
    double quota = 0, period = 0;  // microseconds; without a limit, the quota is "max" or -1
    std::ifstream both(folder + "/cpu.max"), of_quota(folder + "/cpu.cfs_quota_us"),
        of_period(folder + "/cpu.cfs_period_us");
    if (((both >> quota >> period) || (of_quota >> quota && of_period >> period)) && quota > 0 && period > 0)
      limit = std::min(limit, quota / period);
  });
  return static_cast<int>(std::ceil(limit));
}

}  // namespace capstan
