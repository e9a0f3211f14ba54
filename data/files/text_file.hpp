// Reads texts from plain, gzip and zstd files and from standard input, as a whole, in pieces or line by line. Every
// reader of data and every command with an --input goes through it. Memory is bounded whatever a file holds:
// tests/data/test_text_file.cpp and test_text_reader.cpp, tests/fuzz/fuzz_gzip.cpp and fuzz_zstd.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/error.hpp"

namespace capstan {

/// Million bytes that a file may hold, unpacked, which is kept in memory or unpacked to the disk: a few kilobytes can
/// unpack to terabytes.
constexpr int64_t max_file_mb = 4096;
/// No limit, for readers that keep only a piece at a time.
constexpr int64_t any_file_mb = int64_t{1} << 40;

/// A text that is read from its beginning. Throws Error, which names the text and the remedy, if it cannot be read, is
/// truncated or damaged, or has more than max_mb million bytes, and what check_not_packed() throws.
class TextReader {
 public:
  /// Reads at most `size` bytes and returns their number, 0 only at the end.
  using Source = std::function<size_t(char* to, size_t size)>;

  /// Reads a regular file, unpacked if its name ends in .gz or .zst. `remedy`: for a pipe, device or folder.
  explicit TextReader(const std::string& path, int64_t max_mb = any_file_mb,
                      const char* remedy = "a file is needed here");
  /// Reads a command's input: a file that is not empty, or - for standard input, which is not unpacked.
  static TextReader input(const std::string& file, int64_t max_mb = any_file_mb);
  TextReader(TextReader&&) = default;

  /// The path, or stdin.
  const std::string& name() const { return name_; }
  /// The next piece, which is valid until more is read; empty at the end only.
  std::string_view piece();
  /// Reads the next line, without its '\n'; false at the end. Throws Error for a line of more than `most` bytes: a text
  /// without ends of lines would fill the memory.
  bool read_line(std::string& line, size_t most = size_t{1} << 26);
  /// Did the last line that was read end in '\n'?
  bool had_line_end() const { return had_line_end_; }
  /// Changes max_mb.
  void limit(int64_t max_mb) { max_mb_ = max_mb; }
  /// All that is left; max_mb bounds it.
  std::string read_rest();
  /// Reads the next piece where the last one was given out; false if there is one.
  bool at_end();
  /// Is the rest of the next line not there at the moment, as in a pipe that another program writes?
  bool idle() const;

 private:
  TextReader(std::string name, Source source, int64_t max_mb)
      : name_(std::move(name)), source_(std::move(source)), max_mb_(max_mb) {}
  std::string_view waiting() const { return std::string_view(buffer_).substr(at_, filled_ - at_); }

  std::string name_;
  Source source_;
  int64_t max_mb_;
  uint64_t taken_ = 0;
  bool ended_ = false, had_line_end_ = false;
  std::string buffer_;
  size_t at_ = 0, filled_ = 0;  // in buffer_: what was read and not given out
};

/// The content of a file. Throws Error as TextReader does, and when it is empty.
std::string read_text_file(const std::string& path, int64_t max_mb = max_file_mb);

/// Throws Error, which says how to convert it, for a content that is plainly in UTF-16 or UTF-32, and what
/// check_not_packed() throws. `content`: all of it, or its first 4 KB.
void check_is_text(std::string_view content, const std::string& file);

/// Throws Error for a content whose lines end in CR alone, as on old Macs: all of it would be one line.
void check_line_ends(std::string_view content, const std::string& file);

/// What read_text_file() throws for an empty file.
Error empty_file(const std::string& path);

/// Does the name end in .gz or .zst?
bool is_packed_name(const std::string& path);
/// A file's name without .gz or .zst.
std::string unpacked_name(const std::string& path);

/// Is there a NUL in the first 8 KiB (of the unpacked content), or does it begin as no text does? Throws Error when the
/// file cannot be read.
bool looks_binary(const std::string& path);

struct Line {
  std::string_view text;  // without "\n" or "\r\n"
  int64_t number = 0;     // from 1
};

/// Iterates over the lines of a text, which must outlive it. Lines end at '\n' only (U+0085 and U+2028 are text).
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}
  /// False at the end of the text. A text's last line needs no '\n'.
  bool next(Line& line);

 private:
  std::string_view rest_;
  int64_t number_ = 0;
};

}  // namespace capstan
