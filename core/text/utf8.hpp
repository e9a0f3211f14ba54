// UTF-8, strictly: no overlong forms, no surrogates, nothing above U+10FFFF (Unicode 15, table 3-7).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace capstan {

/// What stands at the front of a text.
struct Utf8Character {
  enum class State { valid, invalid, cut_off };  // cut_off: the text ends inside a sequence that is right so far
  State state = State::invalid;
  uint32_t code_point = 0;  // of a valid sequence
  size_t bytes = 0;         // length of the sequence; of the part that is surely wrong (>= 1) when invalid
};

/// Throws std::invalid_argument for an empty text.
Utf8Character first_character(std::string_view text);

/// Throws Error "file:line:column: ..." at the first byte that is not UTF-8. Columns count characters from 1; the text
/// begins with the file's line `first_line`.
void check_utf8(std::string_view text, const std::string& file, int64_t first_line = 1);

/// A place in a file, both numbers from 1.
struct TextPlace {
  int64_t line = 1, column = 1;
};

/// The same for a text that begins at `place`, which moves behind it: for texts that come in parts.
void check_utf8(std::string_view text, const std::string& file, TextPlace& place);

void append_utf8(std::string& text, uint32_t code_point);

/// The largest position <= `at` that is not inside a character of valid UTF-8.
size_t character_border(std::string_view text, size_t at);

}  // namespace capstan
