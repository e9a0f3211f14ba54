// Appends to memory up to a limit, then to a file without a name, which disappears with the process.
// tests/data/test_batches.cpp and test_token_row.cpp.
#include "core/io/byte_store.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/io/file.hpp"
#include "core/io/regular_file.hpp"

namespace capstan {
namespace {

constexpr size_t piece = size_t{1} << 20;  // bytes that are written at once

/// A file without a name. Where the file system has none, one whose name is removed at once.
int open_unnamed(const std::string& folder) {
  const int unnamed = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (unnamed >= 0) return unnamed;
  std::string name = folder + "/.capstan-XXXXXX";
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  if (named < 0) throw_file_error("write a temporary file in", folder, errno);
  ::unlink(name.c_str());
  return named;
}

}  // namespace

ByteStore::~ByteStore() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::unique_ptr<ByteStore> ByteStore::of_file(const std::string& path) {
  const RegularFile file(path);
  auto store = std::make_unique<ByteStore>();
  store->path_ = path;
  store->written_ = static_cast<int64_t>(file.size());
  store->descriptor_ = ::fcntl(file.descriptor(), F_DUPFD_CLOEXEC, 0);
  if (store->descriptor_ < 0) throw_file_error("read", path, errno);
  return store;
}

void ByteStore::append(const void* bytes, size_t count) {
  waiting_.append(static_cast<const char*>(bytes), count);
  if (waiting_.size() <= (in_memory() ? limit_ : piece)) return;
  if (in_memory()) {
    if (folder_.empty())
      folder_ = temporary_folder();
    else
      make_folders(folder_);
    descriptor_ = open_unnamed(folder_);
  }
  flush();
}

void ByteStore::flush() {
  size_t done = 0;
  while (done < waiting_.size()) {
    const ssize_t written = ::pwrite(descriptor_, waiting_.data() + done, waiting_.size() - done,
                                     static_cast<off_t>(written_) + static_cast<off_t>(done));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_file_error("write a temporary file in", folder_, errno);
    done += static_cast<size_t>(written);
  }
  written_ += static_cast<int64_t>(done);
  if (waiting_.capacity() > 2 * piece)
    waiting_ = {};
  else
    waiting_.clear();
}

void ByteStore::read(int64_t place, void* to, size_t count) const {
  auto* out = static_cast<char*>(to);
  while (count > 0) {
    if (place >= written_) {
      waiting_.copy(out, count, static_cast<size_t>(place - written_));
      return;
    }
    const auto in_file = std::min<size_t>(count, static_cast<size_t>(written_ - place));
    const ssize_t taken = ::pread(descriptor_, out, in_file, static_cast<off_t>(place));
    if (taken < 0 && errno == EINTR) continue;
    if (taken <= 0 && !path_.empty())
      throw FileError(fmt::format("{}: a part of this file can no longer be read: another program has shortened it, or "
                                  "its disk fails; restore the file and run the same command again (checkpoints are "
                                  "intact)",
                                  path_),
                      taken < 0 ? errno : EIO);
    if (taken <= 0) throw_file_error("read a temporary file in", folder_, taken < 0 ? errno : EIO);
    out += taken;
    place += taken;
    count -= static_cast<size_t>(taken);
  }
}

std::shared_ptr<const MappedFile> ByteStore::map() {
  flush();
  return std::make_shared<const MappedFile>(descriptor_, static_cast<size_t>(written_), folder_);
}

}  // namespace capstan
