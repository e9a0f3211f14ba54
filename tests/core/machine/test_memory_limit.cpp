#include "core/machine/memory_limit.hpp"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace capstan {
namespace {

namespace fs = std::filesystem;

/// /proc and /sys of another machine.
class Root {
 public:
  Root() : folder_((fs::temp_directory_path() / "capstan-root-XXXXXX").string()) {
    REQUIRE(mkdtemp(folder_.data()) != nullptr);
  }
  ~Root() { fs::remove_all(folder_); }
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(folder_ + path).parent_path());
    std::ofstream(folder_ + path) << text;
  }
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

TEST_CASE("memory limit: without control groups it is that of the machine") {
  const Root root;
  const MemoryLimit limit = memory_limit(root.folder());
  CHECK(limit.bytes > (uint64_t{1} << 27));
  if (limit.of != "this machine") CHECK(limit.of.substr(0, 6) == "ulimit");
}

TEST_CASE("memory limit: control groups of version 2, the tightest of all groups around the process") {
  const Root root;
  root.write("/proc/self/cgroup", "0::/jobs/7\n");
  root.write("/sys/fs/cgroup/jobs/7/memory.max", "max\n");
  root.write("/sys/fs/cgroup/jobs/memory.max", "123456789\n");
  CHECK(memory_limit(root.folder()).bytes == 123456789);
  CHECK(memory_limit(root.folder()).of == "the control group /jobs");
  root.write("/sys/fs/cgroup/jobs/7/memory.max", "1000\n");
  CHECK(memory_limit(root.folder()).of == "the control group /jobs/7");
}

TEST_CASE("memory limit: control groups of version 1, seen from inside a container too") {
  const Root root;
  root.write("/proc/self/cgroup", "9:name=systemd:/x\n4:cpu,memory:/outside/of/here\n0::/\n");
  root.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "777\n");
  CHECK(memory_limit(root.folder()).bytes == 777);
  CHECK(memory_limit(root.folder()).of == "the control group /");
}

}  // namespace
}  // namespace capstan
