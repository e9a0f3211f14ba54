#include "core/machine/memory_limit.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "core/machine/pool.hpp"

#include "tests/support/temporary_folder.hpp"

namespace capstan {

TEST_CASE("memory limit: without control groups it is that of the machine") {
  const TemporaryFolder root;  // /proc and /sys of another machine
  const MemoryLimit limit = memory_limit(root.path());
  CHECK(limit.bytes > (uint64_t{1} << 27));
  if (limit.of != "this machine") CHECK(limit.of.substr(0, 6) == "ulimit");
}

TEST_CASE("memory limit: control groups of version 2, the tightest of all groups around the process") {
  const TemporaryFolder root;  // /proc and /sys of another machine
  root.write("proc/self/cgroup", "0::/jobs/7\n");
  root.write("sys/fs/cgroup/jobs/7/memory.max", "max\n");
  root.write("sys/fs/cgroup/jobs/memory.max", "123456789\n");
  CHECK(memory_limit(root.path()).bytes == 123456789);
  CHECK(memory_limit(root.path()).of == "the control group /jobs");
  root.write("sys/fs/cgroup/jobs/7/memory.max", "1000\n");
  CHECK(memory_limit(root.path()).of == "the control group /jobs/7");
}

TEST_CASE("memory limit: control groups of version 1, seen from inside a container too") {
  const TemporaryFolder root;  // /proc and /sys of another machine
  root.write("proc/self/cgroup", "9:name=systemd:/x\n4:cpu,memory:/outside/of/here\n0::/\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "777\n");
  CHECK(memory_limit(root.path()).bytes == 777);
  CHECK(memory_limit(root.path()).of == "the control group /");
}

TEST_CASE("live memory: what is used counts, what was freed does not") {
  const uint64_t before = live_memory();
  std::vector<char> used(64 << 20, 1);
  Buffer block(64 << 20);
  std::memset(block.data(), 1, 64 << 20);
  CHECK(live_memory() > before + (uint64_t{127} << 20));
  used = std::vector<char>();
  block = Buffer();
  CHECK(live_memory() < before + (uint64_t{8} << 20));
}

}  // namespace capstan
