// A work file names what the work depends on in its metadata. It is written beside the old one and renamed, so that a
// kill leaves one of the two: tests/train/linear/test_unfinished.cpp, tests/cli/long_linear_kills.sh.
#include "train/linear/work_file.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <fmt/core.h>

#include "core/io/file.hpp"
#include "core/io/hash.hpp"
#include "core/io/log.hpp"

namespace capstan {
namespace {
namespace fs = std::filesystem;

constexpr const char* identity_key = "work";
const std::string extension = ".safetensors";

/// Seconds between two times that a file is saved. Tests set the variable, so that they need not wait; with 0, all is
/// saved whenever it can be.
double seconds_between() {
  const char* const given = std::getenv("CAPSTAN_WORK_SECONDS");
  return given != nullptr ? std::max(0.0, std::atof(given)) : 30;
}

}  // namespace

WorkFile::WorkFile(const WorkPlace& place, const std::string& name, const std::string& identity)
    : path_(place.folder.empty() ? "" : (fs::path(place.folder) / folder_name / (name + extension)).string()),
      identity_(hash_hex("work 4\n" + place.identity + identity)),  // 4: raise it when other content is written
      wait_(seconds_between()) {}

std::optional<SafetensorsFile> WorkFile::load() const {
  std::error_code unknown;
  if (path_.empty() || !fs::exists(path_, unknown)) return std::nullopt;
  try {
    SafetensorsFile saved(path_);
    const auto identity = saved.metadata().find(identity_key);
    if (identity != saved.metadata().end() && identity->second == identity_) return saved;
  } catch (const Error&) {
    log_warning(fmt::format("{}: the file is damaged: what it had is worked out again", path_));
  }
  return std::nullopt;
}

void WorkFile::save(const std::vector<TensorToWrite>& tensors) {
  if (path_.empty()) return;
  const Stopwatch watch;
  make_folders(fs::path(path_).parent_path().string());
  replace_file(path_, [&](const std::string& unfinished) {
    write_safetensors(unfinished, tensors, {{identity_key, identity_}});
  });
  wait_ = seconds_between();
  if (wait_ > 0) wait_ = std::max(wait_, 50 * watch.seconds());  // saving takes 2 % of the time at most
  since_ = Stopwatch();
}

void WorkFile::remove_all(const std::string& folder) {
  const fs::path files = fs::path(folder) / folder_name;
  std::error_code none;
  if (!fs::is_directory(files, none)) return;
  for (const char* const name : names) fs::remove(files / (name + extension), none);
  remove_unfinished(files.string());
  fs::remove(files, none);  // stays where it has what somebody else has put there
}

}  // namespace capstan
