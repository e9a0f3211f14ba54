// A work file is a hash of what the work depends on, what the owner of the work appends, and a hash of both. It is
// written beside the old one and renamed, so that a kill leaves one of the two: tests/train/linear/test_unit_work.cpp,
// tests/cli/long_linear_kills.sh.
#include "train/linear/work_file.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <fmt/core.h>

#include "core/io/hash.hpp"
#include "core/io/log.hpp"

namespace capstan {
namespace {

/// Seconds between two times that a file is saved. Tests set the variable, so that they need not wait; with 0, all is
/// saved whenever it can be.
double seconds_between() {
  const char* const given = std::getenv("CAPSTAN_WORK_SECONDS");
  return given != nullptr ? std::max(0.0, std::atof(given)) : 30;
}

/// The hash of the next bytes of a file, `size` of them or all that there are.
std::string hash_of(RegularFile& file, uint64_t size) {
  std::vector<char> piece(size_t{1} << 20);
  Hash hash;
  for (uint64_t left = size; left > 0;) {
    const size_t read = file.read(piece.data(), static_cast<size_t>(std::min<uint64_t>(piece.size(), left)));
    if (read == 0) break;
    hash.add(piece.data(), read);
    left -= read;
  }
  return hash.hex();
}

/// Does the file end with the hash of what is before it?
bool is_whole(const std::string& path) {
  RegularFile file(path);
  std::string end(hash_hex("").size(), ' ');
  if (file.size() < end.size()) return false;
  const std::string content = hash_of(file, file.size() - end.size());
  return file.read(end.data(), end.size()) == end.size() && end == content;
}

/// Has save() written the file? It then begins with a hash.
bool is_work_file(const std::string& path) {
  std::error_code unknown;
  if (std::filesystem::path(path).extension() != WorkFile::ending ||
      !std::filesystem::is_regular_file(std::filesystem::symlink_status(path, unknown)))
    return false;
  std::string begin(hash_hex("").size(), ' ');
  const size_t read = RegularFile(path).read(begin.data(), begin.size());
  return read == begin.size() && begin.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

WorkFile::WorkFile(const WorkPlace& place, const std::string& name, const std::string& identity)
    : path_(place.folder.empty() ? "" : (std::filesystem::path(place.folder) / (name + ending)).string()),
      identity_(hash_hex("work 3\n" + place.identity + identity)),  // 3: raise it when other content is written
      wait_(seconds_between()) {
  std::error_code unknown;
  if (std::filesystem::exists(std::filesystem::symlink_status(path_, unknown))) check_replaceable(path_);
}

std::optional<WorkFile::Saved> WorkFile::load() const {
  std::error_code unknown;
  if (path_.empty() || !std::filesystem::is_regular_file(path_, unknown)) return std::nullopt;
  if (!is_whole(path_)) {
    log_warning(fmt::format("{}: the file does not match its checksum: what it has is worked out again", path_));
    return std::nullopt;
  }
  Saved saved{RegularFile(path_)};
  std::string identity(identity_.size(), ' ');
  if (!saved.read(identity.data(), identity.size()) || identity != identity_) return std::nullopt;
  return saved;
}

void WorkFile::save(const std::function<void(FileWriter& to)>& content) {
  if (path_.empty()) return;
  if (std::filesystem::exists(path_) && !is_work_file(path_))
    throw Error(
        fmt::format("{}: this file was not written by a training, which keeps unfinished work under its name: "
                    "move it away, or give the run another name",
                    path_));
  const Stopwatch watch;
  make_folders(std::filesystem::path(path_).parent_path().string());
  replace_file(path_, [&](const std::string& unfinished) {
    FileWriter file(unfinished);
    file.write(identity_);
    content(file);
    file.sync();
    RegularFile written(unfinished);
    file.write(hash_of(written, written.size()));
    file.sync();
    file.close();
  });
  wait_ = seconds_between();
  if (wait_ > 0) wait_ = std::max(wait_, 50 * watch.seconds());  // saving takes 2 % of the time at most
  since_ = Stopwatch();
}

void WorkFile::remove() const {
  if (!path_.empty() && is_work_file(path_)) remove_tree(path_);
}

void WorkFile::remove_all(const std::string& folder) {
  for (const std::string& name : names_in_folder(folder))
    if (const std::string path = (std::filesystem::path(folder) / name).string(); is_work_file(path)) remove_tree(path);
}

}  // namespace capstan
