// Reads the configuration of a run, and says what to give instead of a folder that is none.
// tests/cli/runs/test_old_runs.cpp.
#include "run/setup/saved_config.hpp"

#include "core/io/file.hpp"
#include "core/strings/nearest.hpp"
#include "core/strings/pattern.hpp"
#include "core/strings/strings.hpp"
#include "train/checkpoints/checkpoint.hpp"

namespace capstan {
namespace {

/// Throws NewerFile if a version that this one does not read saved the run.
void refuse_other_version(const std::filesystem::path& folder) {
  try {
    if (const auto last = Checkpoints(folder / "checkpoints").last()) read_state(*last);
  } catch (const NewerFile&) {
    throw;
  } catch (const Error&) {  // the caller reports the configuration, which is also wrong
  }
}

namespace fs = std::filesystem;

/// The names of the runs right below a folder.
std::vector<std::string> runs_below(const fs::path& folder) {
  std::error_code unknown;
  std::vector<std::string> names;
  if (!fs::is_directory(folder, unknown)) return names;
  for (const std::string& name : names_in_folder(folder.string()))
    if (fs::exists(folder / name / "config.yaml", unknown)) names.push_back(name);
  return names;
}

/// What to give instead of a folder that is not a run's.
std::string run_instead(const fs::path& folder) {
  if (const std::vector<std::string> inside = runs_below(folder); !inside.empty())
    return fmt::format("it is a folder of runs: give one of them, such as {}", (folder / inside.front()).string());
  const fs::path place = folder.has_parent_path() ? folder.parent_path() : fs::path("runs");
  const std::vector<std::string> runs = runs_below(place);
  if (runs.empty()) return "give the folder of a run, such as runs/NAME; capstan compare shows those that there are";
  const std::string meant = nearest(folder.filename().string(), runs);
  return meant.empty() ? fmt::format("below {} there are the runs {}", place.string(), join_first(runs))
                       : fmt::format("is {} meant?", (place / meant).string());
}

}  // namespace

std::string no_run(const fs::path& folder) {
  std::error_code unknown;
  const std::string path = folder.string();
  const bool exists = fs::exists(folder, unknown), pattern = path.find_first_of("*?[") != std::string::npos;
  return fmt::format("{}: {}; {}", path,
                     exists    ? "there is no config.yaml here"
                     : pattern ? "no folder matches this pattern"
                               : "there is no such folder",
                     run_instead(folder));
}

RunConfig load_run_config(const std::filesystem::path& folder, const std::vector<std::string>& overrides) {
  std::error_code error;
  const bool exists = fs::exists(folder / "config.yaml", error);
  if (error == std::errc::permission_denied) throw_file_error("read", folder.string(), error.value());
  if (!exists) throw Error(no_run(folder));
  try {
    return load_config<RunConfig>({(folder / "config.yaml").string()}, overrides);
  } catch (const ConfigError&) {
    refuse_other_version(folder);
    throw;
  }
}

}  // namespace capstan
