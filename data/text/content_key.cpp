// A key is noted in the cache under the state of its files, unless they changed so lately that their clock may not show
// the next change. tests/data/test_token_cache.cpp.
#include "data/text/content_key.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <memory>

#include "core/io/file.hpp"
#include "core/io/mapped_file.hpp"
#include "data/files/text_file.hpp"
#include "data/files/token_row.hpp"
#include "data/tokenizers/texts.hpp"

namespace capstan {
namespace {

struct stat status_of(const FoundFile& file) {
  struct stat status {};
  if (::stat(file.path.c_str(), &status) != 0) throw_file_error("read", file.path, errno);
  return status;
}

/// A file that changed less than two seconds ago may change again without a new date: its clock is that coarse.
bool changed_just_now(const std::vector<FoundFile>& files) {
  for (const FoundFile& file : files)
    if (status_of(file).st_ctim.tv_sec + 2 > std::time(nullptr)) return true;
  return false;
}

/// The key in a note of key_of_content(); empty if there is none, or it is damaged.
std::string noted_key(const std::string& note) {
  std::error_code absent;
  if (std::filesystem::file_size(note, absent) != 32 || absent) return "";
  const std::string key = read_file(note);
  return key.find_first_not_of("0123456789abcdef") == std::string::npos ? key : "";
}

}  // namespace

size_t size_of_text(const std::vector<FoundFile>& files) {
  size_t sum = 0;
  for (const FoundFile& file : files)
    sum += static_cast<size_t>(status_of(file).st_size) * (is_packed_name(file.path) ? 4 : 1);
  return sum;
}

std::string state_of_files(const std::vector<FoundFile>& files) {
  Fingerprint state;
  for (const FoundFile& file : files) {
    const struct stat status = status_of(file);
    state.add(std::filesystem::absolute(file.path).string()).add(file.name);
    state.add(std::vector<int64_t>{static_cast<int64_t>(status.st_dev), static_cast<int64_t>(status.st_ino),
                                   status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec,
                                   status.st_ctim.tv_nsec});
  }
  return state.hex();
}

std::string key_of_content(const std::vector<FoundFile>& files, const std::string& folder, const LogLine& log,
                           CacheUse use) {
  const std::string state = state_of_files(files), note = folder + "/" + state;
  if (std::string key = noted_key(note); !key.empty()) return key;
  const bool may_be_noted = use == CacheUse::write && !changed_just_now(files);
  size_t bytes = 0;
  for (const FoundFile& file : files) bytes += static_cast<size_t>(status_of(file).st_size);
  Progress progress(log, "data: reading", bytes);
  Fingerprint content;
  for (const FoundFile& file : files) {
    const auto mapped = std::make_shared<const MappedFile>(file.path);
    content.add(file.name).begin(mapped->size());
    for_blocks(
        Text(mapped, 0, mapped->size(), &progress), [](std::string_view, size_t at) { return at; },
        [&](std::string_view block) { content.part(block); });
  }
  const std::string key = content.hex();
  if (!may_be_noted || state_of_files(files) != state) return key;
  make_folders(folder);
  replace_file(note, key);
  return key;
}

}  // namespace capstan
