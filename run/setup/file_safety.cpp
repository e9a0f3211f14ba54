// Decides which files a command may read and write around a run. tests/cli/runs/test_strange_runs.cpp and
// test_own_files.cpp.
#include "run/setup/file_safety.hpp"

#include <algorithm>

#include "core/io/file.hpp"
#include "core/strings/strings.hpp"
#include "data/files/file_list.hpp"
#include "train/checkpoints/checkpoint.hpp"

namespace capstan {

namespace fs = std::filesystem;

namespace {

bool holds_run(const fs::path& folder) {
  std::error_code unknown;
  return fs::exists(folder / "config.yaml", unknown) &&
         (fs::exists(folder / "checkpoints", unknown) || fs::exists(folder / ".lock", unknown));
}

/// Is a path, relative to the folder of a run, one that training writes?
bool is_written_by_training(const fs::path& path) {
  const std::string first = path.begin()->string();
  if (first == "checkpoints") return true;
  const auto own = {".lock", "config.yaml", "tokenizer.json", "classes.txt", "metrics.jsonl", "train.log"};
  return std::find(own.begin(), own.end(), path.string()) != own.end();
}

/// Is a file, or what it links to, one of those that `source` stands for?
bool is_among(const std::string& file, const fs::path& source) {
  std::error_code unknown;
  try {
    for (const FoundFile& found : list_files({source.string()}))
      if (fs::equivalent(file, found.path, unknown)) return true;
  } catch (const Error&) {  // a file that is missing cannot be overwritten
  }
  return false;
}

/// The folder that a run was last trained in, where the relative paths of its data begin; empty if it is not known.
std::string working_folder_of(const fs::path& run) {
  try {
    const auto last = Checkpoints(run / "checkpoints").last();
    return last ? read_state(*last).working_folder : "";
  } catch (const Error&) {  // what is damaged is found by what reads it
    return "";
  }
}

/// Where the relative paths of its data begin if the run was moved with them: X of X/runs/mine.
fs::path folder_above_runs(const fs::path& run, const RunConfig& config) {
  std::error_code unknown;
  fs::path above = fs::weakly_canonical(run, unknown);
  for (const fs::path& part : (fs::path(config.folder) / config.name).lexically_normal())
    if (part != ".") above = above.parent_path();
  return above;
}

}  // namespace

void refuse_links_outside(const fs::path& folder, const char* remedy) {
  std::error_code error;
  const fs::path inside = fs::weakly_canonical(folder, error);
  for (fs::recursive_directory_iterator entry(inside, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code unknown;
    if (!entry->is_symlink(unknown)) continue;
    const fs::path inside_run = fs::weakly_canonical(entry->path(), unknown).lexically_relative(inside);
    if (unknown || inside_run.empty() || *inside_run.begin() == "..")
      throw Error(fmt::format("{}: links to {}, outside of the run: {}", entry->path().string(),
                              fs::read_symlink(entry->path(), unknown).string(), remedy));
  }
  if (error && error.value() != ENOENT && error.value() != ENOTDIR)
    throw_file_error("list", folder.string(), error.value());
}

bool has_data_of_training(const SavedRun& run, const DataSource& data, Split split) {
  const SourceFacts facts = facts_of(run.config.data);
  if (facts.files.empty()) return true;
  if (split == Split::test || !run.state) return false;
  const auto saved = run.state->identity.find("data");
  const std::string identity = data.identity();
  return saved != run.state->identity.end() && renewed_identity(run.config.data, saved->second, identity) == identity;
}

void refuse_file_of_run(const fs::path& path) {
  std::error_code unknown;
  const fs::path whole = fs::weakly_canonical(fs::absolute(path, unknown), unknown);
  for (fs::path folder = whole; folder.has_relative_path();) {
    folder = folder.parent_path();
    if (holds_run(folder) && is_written_by_training(whole.lexically_relative(folder)))
      throw ConfigError(
          fmt::format("{}: belongs to the run {}: give another name", path.string(), folder.filename().string()));
  }
}

void check_output_file(const std::string& path, const std::vector<std::string>& inputs) {
  std::error_code unknown;
  if (fs::is_directory(path, unknown))
    throw ConfigError(fmt::format("--output: {} is a folder: give the name of a file", path));
  for (const std::string& input : inputs)
    if (fs::equivalent(path, input, unknown))
      throw ConfigError(fmt::format("--output: {} is the file that is read: give another name", path));
  refuse_file_of_run(path);
  check_replaceable(path);
}

void refuse_data_file(const std::string& path, const RunConfig& config, const fs::path& folder) {
  std::error_code unknown;
  if (!fs::exists(path, unknown)) return;
  const std::vector<fs::path> places{"", working_folder_of(folder), folder_above_runs(folder, config)};
  for (const SourceFiles& files : facts_of(config.data).files)
    for (const std::string& source : files.paths)
      for (const fs::path& place : places)
        if (is_among(path, place / source))
          throw ConfigError(fmt::format("--output: {} is one of the files of data.{} of the run {}: give another name",
                                        path, files.key, config.name));
}

}  // namespace capstan
