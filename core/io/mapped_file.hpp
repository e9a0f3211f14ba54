// Files that are mapped into memory, and their faults: the kernel sends SIGBUS when a file becomes shorter while it is
// read, or its disk fails. "a mapped file that another process shortens" in tests/core/io/test_file.cpp.
#pragma once

#include <cstddef>
#include <string>

#include "core/base/no_copy.hpp"

namespace capstan {

/// A whole regular file, mapped into memory for reading. If another process truncates the file meanwhile, reading the
/// lost part raises SIGBUS, which catch_mapping_faults() turns into a message.
class MappedFile : NoCopy {
 public:
  explicit MappedFile(std::string path);
  /// The first `size` bytes of an open file, which messages call `path`.
  MappedFile(int descriptor, size_t size, std::string path);
  ~MappedFile();

  const std::string& path() const { return path_; }
  const unsigned char* data() const { return data_; }
  size_t size() const { return size_; }

  /// Removes the pages of bytes [begin, end) from this process's memory;
  /// the next access reads them from the file again.
  void release(size_t begin, size_t end) const;

 private:
  void map(int descriptor);

  std::string path_;
  const unsigned char* data_ = nullptr;
  size_t size_ = 0;
};

/// From here on, a fault of a mapped file ends the process with exit code 1 and a message that names the file, on
/// standard error and in the fault log. For programs: the library leaves signals alone.
void catch_mapping_faults();
/// Sets a file descriptor that also gets the message of a mapping fault; -1 for none.
void set_fault_log(int descriptor);

/// Called by MappedFile: the `size` bytes at `begin` are those of the file `path`, a text that must live until
/// forget_mapping().
void note_mapping(const unsigned char* begin, size_t size, const char* path);
void forget_mapping(const unsigned char* begin);

}  // namespace capstan
