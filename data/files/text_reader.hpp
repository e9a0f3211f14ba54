// Reading a text from its beginning: that of a file, plain, gzip or zstd, or standard input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/base/error.hpp"

namespace capstan {

/// Tells end from error: what cannot be read, is truncated or damaged is thrown as Error, which names the text and the
/// remedy.
class TextReader {
 public:
  /// Of a regular file, which is unpacked if its name ends in .gz or .zst. `remedy`: for what is a pipe, device or folder.
  explicit TextReader(const std::string& path, const char* remedy = "a file is needed here");
  /// Of what a command is given: a file that is not empty, or - for standard input, which is not unpacked.
  static TextReader input(const std::string& file);
  ~TextReader();
  TextReader(TextReader&& other) noexcept;
  TextReader& operator=(TextReader&&) = delete;

  /// The path, or stdin.
  const std::string& name() const { return name_; }
  /// From now on, reading more than `max_mb` million bytes in all throws Error.
  void limit(int64_t max_mb);

  /// Reads up to `size` bytes; none at the end only.
  size_t read(char* to, size_t size);
  /// Reads the next line, without its '\n'; false at the end. Throws Error for a line of more than `most` bytes: a text
  /// without ends of lines would fill the memory.
  bool read_line(std::string& line, size_t most = size_t{1} << 26);
  /// All that is left.
  std::string read_rest();
  bool at_end();
  /// Is the rest of the next line not there at the moment, as in a pipe that another program writes?
  bool idle() const;

 private:
  class Bytes;
  class StandardInput;
  class PlainFile;
  class PackedFile;
  class GzipFile;
  class ZstdFile;

  TextReader(std::string name, std::unique_ptr<Bytes> bytes);
  size_t next(char* to, size_t size);

  std::string name_;
  std::unique_ptr<Bytes> bytes_;
  uint64_t taken_ = 0, most_;
  bool ended_ = false;
  std::string buffer_;
  size_t at_ = 0, filled_ = 0;  // in buffer_: what is still to be given out
};

/// Does the name end in .gz or .zst?
bool is_packed_name(const std::string& path);
/// A file's name without .gz or .zst.
std::string unpacked_name(const std::string& path);

/// What is thrown for a file without content.
Error empty_file(const std::string& path);

}  // namespace capstan
