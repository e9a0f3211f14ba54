// Opening what must be a file with content: no folder, pipe, device or socket. Every file that a user names is read
// through it (data/files, run/yaml, checkpoints); tests/core/io/test_regular_file.cpp holds that nothing waits for a
// pipe.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/error.hpp"

namespace capstan {

/// A system call on a file failed; the message names the file and the reason.
class FileError : public Error {
 public:
  FileError(const std::string& what, int error_number) : Error(what), error_number_(error_number) {}
  /// ENOENT, ENOSPC, ...
  int error_number() const { return error_number_; }

 private:
  int error_number_;
};

/// A later version of the program wrote the file, so that this one cannot read it: it is not damaged.
class NewerFile : public Error {
 public:
  using Error::Error;
};

/// What a file of this mode (of stat(2)) is called if it is not a regular one: "a symbolic link", "a folder".
const char* kind_name(unsigned mode);

/// A file that is open for reading.
class RegularFile {
 public:
  /// Throws FileError naming the path when it does not exist or cannot be read, and Error with `remedy` when it is no
  /// regular file: a pipe would let the program wait for ever, and a device such as /dev/zero has no end.
  explicit RegularFile(std::string path, const char* remedy = "a file is needed here");
  ~RegularFile();
  RegularFile(RegularFile&& other) noexcept;
  RegularFile& operator=(RegularFile&&) = delete;

  const std::string& path() const { return path_; }
  /// In bytes, when it was opened.
  uint64_t size() const { return size_; }
  int descriptor() const { return descriptor_; }

  /// Reads up to `size` bytes; fewer at the end of the file only. Throws FileError.
  size_t read(void* to, size_t size);

 private:
  std::string path_;
  uint64_t size_ = 0;
  int descriptor_ = -1;
};

}  // namespace capstan
