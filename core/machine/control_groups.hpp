// The control groups of Linux that this process is in, by which a container limits it. For memory_limit.hpp and
// cpu_limit.hpp, whose tests try both versions.
#pragma once

#include <functional>
#include <string>

namespace capstan {

/// Calls `visit` with the folder and the name ("/jobs/7") of each group that limits `controller` for this process, and
/// of the groups around it up to the outermost, "/": those of version 2, and of version 1. `root` is put before /proc
/// and /sys, for tests.
void for_each_control_group(const std::string& root, const std::string& controller,
                            const std::function<void(const std::string& folder, const std::string& name)>& visit);

}  // namespace capstan
