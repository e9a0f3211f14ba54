// Which folders are those of runs.
#pragma once

#include <string>
#include <vector>

namespace capstan {

/// The file of times in the folder of a search.
constexpr const char* search_file = "autotune.json";
/// The short runs of a search, below runs/SEARCH: they cannot be compared with others.
enum class ShortRuns { with, without };
/// The folders, with those of a sweep, a search or several runs replaced by the runs in them, each once. Short runs of
/// a search are left out where their folder is not given alone. Throws Error for a folder that does not exist.
std::vector<std::string> run_folders(const std::vector<std::string>& folders,
                                     ShortRuns short_runs = ShortRuns::without);

}  // namespace capstan
