// Opens a file without waiting for a pipe, and says what is there if it is no file with content.
// tests/core/io/test_regular_file.cpp.
#include "core/io/regular_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace capstan {
namespace {

[[noreturn]] void cannot_open(const std::string& path, int error_number, const char* remedy) {
  std::error_code unknown;
  if (error_number == ENOENT || error_number == ENOTDIR)
    throw FileError(fmt::format("{}: no such file; check the path (the program runs in {})", path,
                                std::filesystem::current_path(unknown).string()),
                    error_number);
  if (error_number == ENXIO)  // what opening a socket gives
    throw FileError(fmt::format("{}: is not a file; {}", path, remedy), error_number);
  throw FileError(fmt::format("{}: cannot be opened: {}", path, std::strerror(error_number)), error_number);
}

}  // namespace

const char* kind_name(unsigned mode) {
  switch (mode & S_IFMT) {
    case S_IFLNK:
      return "a symbolic link";
    case S_IFDIR:
      return "a folder";
    case S_IFIFO:
      return "a pipe";
    case S_IFSOCK:
      return "a socket";
    default:
      return "a device";
  }
}

RegularFile::RegularFile(std::string path, const char* remedy) : path_(std::move(path)) {
  // Without O_NONBLOCK, opening a pipe waits for a process that writes to it.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat status {};
  const bool known = descriptor_ >= 0 && ::fstat(descriptor_, &status) == 0;
  const int error_number = errno;
  if (known && S_ISREG(status.st_mode)) {
    size_ = static_cast<uint64_t>(status.st_size);
    return;
  }
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!known) cannot_open(path_, error_number, remedy);
  throw Error(fmt::format("{}: is {}; {}", path_, kind_name(status.st_mode), remedy));
}

RegularFile::~RegularFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

RegularFile::RegularFile(RegularFile&& other) noexcept
    : path_(std::move(other.path_)), size_(other.size_), descriptor_(std::exchange(other.descriptor_, -1)) {}

size_t RegularFile::read(void* to, size_t size) {
  auto* const bytes = static_cast<char*>(to);
  size_t got = 0;
  while (got < size) {
    const ssize_t count = ::read(descriptor_, bytes + got, size - got);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw FileError(fmt::format("{}: reading failed: {}", path_, std::strerror(errno)), errno);
    if (count == 0) break;
    got += static_cast<size_t>(count);
  }
  return got;
}

}  // namespace capstan
