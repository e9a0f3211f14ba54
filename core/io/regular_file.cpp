#include "core/io/regular_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/base/error.hpp"

namespace capstan {
namespace {

[[noreturn]] void cannot_open(const std::string& path, int error_number, const char* remedy) {
  std::error_code unknown;
  if (error_number == ENOENT || error_number == ENOTDIR)
    throw Error(fmt::format("{}: no such file; check the path (the program runs in {})", path,
                            std::filesystem::current_path(unknown).string()));
  if (error_number == ENXIO)  // what opening a socket gives
    throw Error(fmt::format("{}: is not a file; {}", path, remedy));
  throw Error(fmt::format("{}: cannot be opened: {}", path, std::strerror(error_number)));
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

OpenedPath open_for_reading(const std::string& path) {
  OpenedPath opened;
  // Without O_NONBLOCK, opening a pipe waits for a process that writes to it.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat status {};
  if (descriptor < 0 || ::fstat(descriptor, &status) != 0) {
    opened.error_number = errno;
  } else if (S_ISREG(status.st_mode)) {
    opened.descriptor = descriptor;
    opened.size = static_cast<uint64_t>(status.st_size);
    return opened;
  } else {
    opened.kind = kind_name(status.st_mode);
  }
  if (descriptor >= 0) ::close(descriptor);
  return opened;
}

RegularFile::RegularFile(std::string path, const char* remedy) : path_(std::move(path)) {
  const OpenedPath opened = open_for_reading(path_);
  if (opened.error_number != 0) cannot_open(path_, opened.error_number, remedy);
  if (opened.kind != nullptr) throw Error(fmt::format("{}: is {}; {}", path_, opened.kind, remedy));
  descriptor_ = opened.descriptor;
  size_ = opened.size;
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
    const ssize_t now = ::read(descriptor_, bytes + got, size - got);
    if (now < 0 && errno == EINTR) continue;
    if (now < 0) throw Error(fmt::format("{}: reading failed: {}", path_, std::strerror(errno)));
    if (now == 0) break;
    got += static_cast<size_t>(now);
  }
  return got;
}

}  // namespace capstan
