// The last words of a command that made something: where it is, and what can be done with it.
// tests/cli/training/test_sweep.cpp and tests/cli/test_first_steps.sh follow them.
#pragma once

#include <string>

#include "run/setup/run_config.hpp"

namespace capstan {

/// "runs/mine: 82 MB on disk", of a run or of a folder with several.
std::string disk_line(const std::string& folder);
/// Logs `where`, then "next: FIRST, or SECOND".
void say_next(const std::string& where, const std::string& first, const std::string& second);
/// Logs where a run is, its size on the disk, and the commands that use it.
void say_next(const RunConfig& config, const std::string& folder);

}  // namespace capstan
