// How many CPUs this process may use at once: threads() begins with it. tests/core/machine/test_cpu_limit.cpp.
#pragma once

#include <string>

namespace capstan {

/// The physical cores that this process may run on, or fewer where the quota of a control group (v1 or v2), such as
/// that of a container, is lower; part of a CPU counts as one. Hardware threads that share a core gain nothing in
/// matrix products, and threads beyond a quota only stop each other. Tests put `root` before /proc and /sys.
int cpu_limit(const std::string& root = "");

}  // namespace capstan
