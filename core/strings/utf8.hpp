// UTF-8, strictly: no overlong forms, no surrogates, nothing above U+10FFFF (Unicode 15, table 3-7). For tokenizers,
// data, YAML and JSON; tests/fuzz/fuzz_utf8.cpp holds that a character has one encoding.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace capstan {

/// The first character of a text.
struct Utf8Character {
  enum class State { valid, invalid, cut_off };  // cut_off: the text ends inside a sequence that is valid so far
  State state = State::invalid;
  uint32_t code_point = 0;  // of a valid sequence
  size_t bytes = 0;         // length of the sequence; when invalid, of the part that is certainly wrong (>= 1)
};

/// Throws std::invalid_argument for an empty text.
Utf8Character first_character(std::string_view text);

/// Calls visit(character, its bytes) for one character of a text after the other, invalid ones too.
template <class Visit>
void for_each_character(std::string_view text, const Visit& visit) {
  for (; !text.empty();) {
    const Utf8Character character = first_character(text);
    visit(character, text.substr(0, character.bytes));
    text.remove_prefix(character.bytes);
  }
}

bool is_utf8(std::string_view text);

/// The bytes at the beginning of a file by which wide_encoding() decides.
constexpr size_t wide_head = 4096;
/// What iconv calls the encoding of a file that begins like this, if that is UTF-16 or UTF-32: by its byte order mark
/// or, without one, by the places of its NULs, as in languages of the Latin alphabet, of which fewer than eight bytes
/// say too little. Null for any other file.
const char* wide_encoding(std::string_view content);

/// Throws Error "file:line:column: ..." at the first byte that is not UTF-8. Columns count characters from 1; the text
/// begins at line `first_line` of the file.
void check_utf8(std::string_view text, const std::string& file, int64_t first_line = 1);

/// Throws Error unless `name` is UTF-8, as all names in files of a run are. place: "file:line"; what: "the label".
void check_name(std::string_view name, const std::string& place, const char* what);

/// A place in a file; both count from 1.
struct TextPlace {
  int64_t line = 1, column = 1;
};

/// check_utf8() for a part of a text that begins at `place`; moves `place` to its end.
void check_utf8(std::string_view text, const std::string& file, TextPlace& place);

/// Appends the bytes of a code point, which must be valid.
void append_utf8(std::string& text, uint32_t code_point);

/// The largest position <= `at` that is not inside a character; the text is valid UTF-8.
size_t character_boundary(std::string_view text, size_t at);

}  // namespace capstan
