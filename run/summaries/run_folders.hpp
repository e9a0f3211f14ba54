// Which folders are those of runs. tests/cli/runs/test_strange_runs.cpp and test_eval.cpp hold it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace capstan {

/// Whether a folder has a config.yaml. One that may not be read counts too, so that the command says what it is.
bool is_run(const std::filesystem::path& folder);

/// The file of times in the folder of a search.
constexpr const char* search_file = "autotune.json";
/// The folders, with those of a sweep, a search or several runs replaced by the runs in them, each once. Short runs of
/// a search, below runs/SEARCH, cannot be compared with others: they are left out where their folder is not given
/// alone. Throws Error for a folder that does not exist.
std::vector<std::string> run_folders(const std::vector<std::string>& folders);

}  // namespace capstan
