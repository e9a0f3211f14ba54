// Whole texts of files, plain, gzip or zstd, and the lines of a text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "data/files/text_reader.hpp"

namespace capstan {

/// Million bytes that one file may hold, unpacked, where the configuration does not say (data.max_file_mb): a few kilobytes
/// can unpack to terabytes.
constexpr int64_t usual_max_file_mb = 4096;

/// The content of a file; one whose name ends in .gz or .zst is unpacked. Throws Error naming the file and the remedy
/// when it is missing, no regular file, unreadable, empty, larger than max_mb, not packed although it is called so, packed
/// with a window above 128 MiB, truncated or damaged.
std::string read_text_file(const std::string& path, int64_t max_mb = usual_max_file_mb);

/// The same content, block by block, for texts of any size; `take` returns false when it has had enough. Throws as
/// read_text_file() does, but an empty file gives no block.
void read_blocks(const std::string& path, size_t block, const std::function<bool(std::string_view)>& take,
                 int64_t max_mb = usual_max_file_mb);

/// Is there a NUL in the first 8 KiB (of the unpacked content)? Throws Error when the file cannot be read.
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
