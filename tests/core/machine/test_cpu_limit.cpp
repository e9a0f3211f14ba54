// The quota of CPUs of control groups, as containers have it.
#include <doctest/doctest.h>

#include "core/machine/cpu_limit.hpp"
#include "tests/support/temporary_folder.hpp"

namespace capstan {

TEST_CASE("cpu limit: the lowest quota of the groups around the process, in whole CPUs") {
  const TemporaryFolder root;  // /proc and /sys of another machine
  const int all = cpu_limit(root.path());
  CHECK(all >= 1);
  root.write("proc/self/cgroup", "5:cpu,cpuacct:/outside/of/here\n0::/jobs/7\n");
  root.write("sys/fs/cgroup/jobs/7/cpu.max", "max 100000\n");
  CHECK(cpu_limit(root.path()) == all);
  root.write("sys/fs/cgroup/jobs/cpu.max", "50000 100000\n");
  CHECK(cpu_limit(root.path()) == 1);
  root.write("sys/fs/cgroup/jobs/cpu.max", "6400000 100000\n");
  CHECK(cpu_limit(root.path()) == std::min(all, 64));
  root.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  root.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  CHECK(cpu_limit(root.path()) == std::min(all, 64));
  root.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "90000\n");
  CHECK(cpu_limit(root.path()) == 1);
}

}  // namespace capstan
