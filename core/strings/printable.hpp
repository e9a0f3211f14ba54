// Text from outside (labels, names of files, keys, cells of data) as it may be shown on a terminal. Whatever quotes
// such text goes through it: the log, tables of commands, errors. tests/core/strings/test_printable.cpp.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace capstan {

/// The text without anything that a terminal obeys: control characters (C0, DEL, C1), characters that change the
/// direction of writing, and bytes that are not UTF-8 become escapes: a backslash, x or u, and their code in
/// hexadecimal. Line ends and tabs stay.
std::string printable(std::string_view text);
/// printable() for a text that must stay within its line: line ends and tabs become escapes, too, as in C.
std::string printable_line(std::string_view text);

/// The text as one word of a command line: in quotes if a shell would read it otherwise.
std::string shell_word(const std::string& text);

/// printable() for a text that comes in pieces, which may be cut within a character.
class PrintablePieces {
 public:
  std::string push(std::string_view piece);
  /// The rest, after the last piece: a character whose end never came.
  std::string finish();

 private:
  std::string begun_;  // a character whose end has not come yet
};

/// Columns that a terminal needs for a printable line: two for a wide character, none for a combining accent.
size_t display_columns(std::string_view line);
/// The longest beginning of a printable line that needs at most this many columns.
std::string_view first_columns(std::string_view line, size_t columns);

}  // namespace capstan
