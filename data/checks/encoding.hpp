// How a file's bytes are written: UTF-8 or not, line ends, and signs that it was converted wrongly.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace capstan {

struct EncodingFacts {
  int64_t bytes = 0, invalid = 0, nul = 0;  // invalid: bytes that are not UTF-8
  int64_t lf = 0, crlf = 0;                 // lines that end so
  int64_t mojibake = 0;                     // UTF-8 that was read as Latin-1 and written as UTF-8: "Ã©" for "é"
  bool bom = false, utf16 = false;          // a byte order mark, of UTF-8 or of UTF-16

  bool mixed_line_ends() const { return lf > 0 && crlf > 0; }
  /// What is unusual about the encoding, in words: "byte order mark, 3 NUL bytes"; empty if nothing is.
  std::string remarks() const;
};

/// Collects the facts of a file that comes in pieces.
class EncodingCheck {
 public:
  void push(std::string_view piece);
  EncodingFacts finish();

 private:
  size_t count(std::string_view text, size_t limit);

  EncodingFacts facts_;
  std::string head_;   // the first bytes, among which a byte order mark is
  std::string begun_;  // the end of the last piece: what begins there may continue
};

}  // namespace capstan
