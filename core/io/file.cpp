#include "core/io/file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/base/error.hpp"

namespace capstan {
namespace {

FileHook& file_hook() {
  static FileHook hook;
  return hook;
}

void before(const char* call, const std::string& path) {
  if (file_hook()) file_hook()(call, path);
}

const char* remedy(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return "free some space, or choose a folder on another disk; what was saved before is intact";
    case EROFS:
    case EACCES:
    case EPERM:
      return "choose a folder you may write to, or change its permissions";
    case ENOTDIR:
    case EEXIST:
      return "a part of this path is a file: choose another folder";
    case ENOENT:
      return "check the path";
    default:
      return "check the disk and the path";
  }
}

}  // namespace

void set_file_hook(FileHook hook) { file_hook() = std::move(hook); }

void throw_file_error(const char* doing, const std::string& path, int error_number) {
  throw Error(fmt::format("cannot {} {}: {} ({})", doing, path, std::strerror(error_number), remedy(error_number)));
}

FileWriter::FileWriter(std::string path, Mode mode) : path_(std::move(path)) {
  before("open", path_);
  descriptor_ =
      ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (mode == Mode::append ? O_APPEND : O_TRUNC), 0666);
  if (descriptor_ < 0) throw_file_error("create", path_, errno);
}

FileWriter::~FileWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void FileWriter::write(const void* bytes, size_t count) {
  before("write", path_);
  const char* next = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t written = ::write(descriptor_, next, count);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_file_error("write", path_, errno);
    next += written;
    count -= static_cast<size_t>(written);
  }
}

void FileWriter::sync() {
  before("fsync", path_);
  if (::fsync(descriptor_) != 0) throw_file_error("write", path_, errno);
}

void FileWriter::close() {
  before("close", path_);
  if (::close(std::exchange(descriptor_, -1)) != 0) throw_file_error("write", path_, errno);
}

MappedFile::MappedFile(std::string path) : path_(std::move(path)) {
  const int descriptor = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw_file_error("read", path_, errno);
  struct stat status {};
  const bool known = ::fstat(descriptor, &status) == 0;
  const int error_number = errno;
  if (!known || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    if (!known) throw_file_error("read", path_, error_number);
    throw Error(fmt::format("cannot read {}: it is not a file", path_));
  }
  size_ = static_cast<size_t>(status.st_size);
  if (size_ > 0) {
    void* const memory = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    const int map_error = errno;
    ::close(descriptor);
    if (memory == MAP_FAILED) throw_file_error("read", path_, map_error);
    data_ = static_cast<const unsigned char*>(memory);
  } else {
    ::close(descriptor);
  }
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<unsigned char*>(data_), size_);
}

void MappedFile::release(size_t begin, size_t end) const {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  begin -= begin % page;
  if (end < size_) end -= end % page;
  if (data_ != nullptr && begin < end) ::madvise(const_cast<unsigned char*>(data_) + begin, end - begin, MADV_DONTNEED);
}

void MappedFile::expect_jumps() const {
  if (data_ != nullptr) ::madvise(const_cast<unsigned char*>(data_), size_, MADV_RANDOM);
}

std::string read_file(const std::string& path) {
  const MappedFile file(path);
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

void write_file(const std::string& path, std::string_view content) {
  FileWriter file(path);
  file.write(content);
  file.sync();
  file.close();
}

void replace_file(const std::string& path, std::string_view content) {
  const std::string unfinished = path + ".tmp";
  write_file(unfinished, content);
  rename_path(unfinished, path);
}

void make_folders(const std::string& path) {
  before("mkdir", path);
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw_file_error("create the folder", path, error.value());
  if (!std::filesystem::is_directory(path)) throw_file_error("create the folder", path, ENOTDIR);
}

void sync_folder(const std::string& path) {
  before("fsync folder", path);
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) throw_file_error("open the folder", path, errno);
  const int result = ::fsync(descriptor);
  const int error_number = errno;
  ::close(descriptor);
  if (result != 0) throw_file_error("write the folder", path, error_number);
}

void rename_path(const std::string& from, const std::string& to) {
  before("rename", to);
  if (::rename(from.c_str(), to.c_str()) != 0) throw_file_error("rename to", to, errno);
}

void replace_link(const std::string& link, const std::string& target) {
  const std::filesystem::path path(link);
  const std::string waiting = (path.parent_path() / ("." + path.filename().string() + ".tmp")).string();
  remove_tree(waiting);
  before("symlink", waiting);
  if (::symlink(target.c_str(), waiting.c_str()) != 0) throw_file_error("create the link", waiting, errno);
  rename_path(waiting, link);
}

void remove_tree(const std::string& path) {
  before("remove", path);
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error && error.value() != ENOENT) throw_file_error("remove", path, error.value());
}

void truncate_file(const std::string& path, size_t size) {
  before("truncate", path);
  if (::truncate(path.c_str(), static_cast<off_t>(size)) != 0) throw_file_error("shorten", path, errno);
}

}  // namespace capstan
