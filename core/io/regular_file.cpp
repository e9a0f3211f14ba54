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

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

[[noreturn]] void cannot_open(const std::string& path, int error_number) {
  std::error_code unknown;
  if (error_number == ENOENT || error_number == ENOTDIR)
    throw Error(fmt::format("{}: no such file; check the path (the program runs in {})", path,
                            std::filesystem::current_path(unknown).string()));
  if (error_number == ENXIO)  // what opening a socket gives
    throw Error(fmt::format("{}: is not a file; a file is needed here", path));
  throw Error(fmt::format("{}: cannot be opened: {}", path, std::strerror(error_number)));
}

}  // namespace

RegularFile::RegularFile(std::string path) : path_(std::move(path)) {
  // Without O_NONBLOCK, opening a pipe waits for a process that writes to it.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor_ < 0) cannot_open(path_, errno);
  struct stat status {};
  const int result = ::fstat(descriptor_, &status), error_number = errno;
  if (result == 0 && S_ISREG(status.st_mode)) {
    size_ = static_cast<uint64_t>(status.st_size);
    return;
  }
  ::close(descriptor_);
  if (result != 0) cannot_open(path_, error_number);
  throw Error(fmt::format("{}: is {}; a file is needed here", path_, kind_of(status.st_mode)));
}

RegularFile::~RegularFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

RegularFile::RegularFile(RegularFile&& other) noexcept
    : path_(std::move(other.path_)), size_(other.size_), descriptor_(std::exchange(other.descriptor_, -1)) {}

int RegularFile::release() { return std::exchange(descriptor_, -1); }

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
