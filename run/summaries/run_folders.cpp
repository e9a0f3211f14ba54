// Looks for folders with a config.yaml. tests/cli/runs/test_strange_runs.cpp, test_eval.cpp.
#include "run/summaries/run_folders.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "core/io/log.hpp"
#include "core/strings/strings.hpp"
#include "run/setup/run_config.hpp"

namespace capstan {
namespace {

/// Whether a folder is that of a search, which has short runs in the folders below it.
bool is_search(const std::filesystem::path& folder) {
  std::error_code unknown;
  return std::filesystem::exists(folder / search_file, unknown);
}

/// The runs in a folder that is no run itself, and in its folders, down to `levels` below it.
std::vector<std::string> runs_in(const std::filesystem::path& folder, int levels) {
  std::error_code unknown;
  if (is_run(folder)) return {};
  std::vector<std::string> runs;
  for (const std::string& name : names_in_folder(folder.string())) {
    const auto path = folder / name;
    if (std::filesystem::is_symlink(path, unknown)) continue;  // to another run
    if (is_run(path)) {
      runs.push_back(path.string());
    } else if (levels > 0 && !is_search(folder)) {
      const std::vector<std::string> below = runs_in(path, levels - 1);
      runs.insert(runs.end(), below.begin(), below.end());
    }
  }
  return runs;
}

}  // namespace

bool is_run(const std::filesystem::path& folder) {
  std::error_code error;
  if (std::filesystem::exists(folder / "config.yaml", error)) return true;
  const std::filesystem::directory_iterator names(folder, error);
  return error == std::errc::permission_denied;
}

std::vector<std::string> run_folders(const std::vector<std::string>& folders) {
  constexpr int levels = 2;  // runs/first/second
  std::error_code unknown;
  for (const std::string& folder : folders)
    if (!std::filesystem::exists(std::filesystem::symlink_status(folder, unknown))) throw Error(no_run(folder));
  const bool runs_given =
      std::any_of(folders.begin(), folders.end(), [](const auto& folder) { return is_run(folder); });
  std::vector<std::string> runs, left_out;
  const auto add = [&](const std::string& run) {
    if (std::find(runs.begin(), runs.end(), run) == runs.end()) runs.push_back(run);
  };
  for (const std::string& folder : folders) {
    const std::vector<std::string> inside = runs_in(folder, levels);
    if (inside.empty() && (folders.size() == 1 || !std::filesystem::is_regular_file(folder, unknown))) add(folder);
    if (!inside.empty() && runs_given && is_search(std::filesystem::path(folder) / ".."))
      left_out.push_back(folder);
    else
      std::for_each(inside.begin(), inside.end(), add);
  }
  if (!left_out.empty())
    log_info(fmt::format("{}: short runs of a search, left out beside others; give such a folder alone",
                         join_first(left_out)));
  return runs.empty() ? folders : runs;
}

}  // namespace capstan
