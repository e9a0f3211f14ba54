// Opening what must be a file with content: no folder, pipe, device or socket.
#pragma once

#include <cstdint>
#include <string>

namespace capstan {

/// A file that is open for reading.
class RegularFile {
 public:
  /// Throws Error naming the path when it does not exist, cannot be read, or is not a regular file: a pipe would let the
  /// program wait for ever, and a device such as /dev/zero has no end.
  explicit RegularFile(std::string path);
  ~RegularFile();
  RegularFile(RegularFile&& other) noexcept;
  RegularFile& operator=(RegularFile&&) = delete;

  const std::string& path() const { return path_; }
  /// In bytes, when it was opened.
  uint64_t size() const { return size_; }
  int descriptor() const { return descriptor_; }
  /// Gives up the descriptor, which the caller then closes.
  int release();

  /// Reads up to `size` bytes; fewer at the end of the file only. Throws Error.
  size_t read(void* to, size_t size);

 private:
  std::string path_;
  uint64_t size_ = 0;
  int descriptor_ = -1;
};

}  // namespace capstan
