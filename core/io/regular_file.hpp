// Opening what must be a file with content: no folder, pipe, device or socket.
#pragma once

#include <cstdint>
#include <string>

namespace capstan {

/// A path that was opened for reading, or why it could not be.
struct OpenedPath {
  int descriptor = -1;         // of a regular file; -1: none
  uint64_t size = 0;           // in bytes
  int error_number = 0;        // of the call that failed; 0: none did
  const char* kind = nullptr;  // what it is instead of a regular file: "a pipe"
};
/// Never waits, not even for a pipe.
OpenedPath open_for_reading(const std::string& path);
/// What a file of this mode (of stat(2)) is called if it is not a regular one: "a symbolic link", "a folder".
const char* kind_name(unsigned mode);

/// A file that is open for reading.
class RegularFile {
 public:
  /// Throws Error naming the path when it does not exist, cannot be read, or is not a regular file (with `remedy`): a pipe
  /// would let the program wait for ever, and a device such as /dev/zero has no end.
  explicit RegularFile(std::string path, const char* remedy = "a file is needed here");
  ~RegularFile();
  RegularFile(RegularFile&& other) noexcept;
  RegularFile& operator=(RegularFile&&) = delete;

  const std::string& path() const { return path_; }
  /// In bytes, when it was opened.
  uint64_t size() const { return size_; }

  /// Reads up to `size` bytes; fewer at the end of the file only. Throws Error.
  size_t read(void* to, size_t size);

 private:
  std::string path_;
  uint64_t size_ = 0;
  int descriptor_ = -1;
};

}  // namespace capstan
