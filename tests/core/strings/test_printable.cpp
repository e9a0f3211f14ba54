// Text from outside that is shown on a terminal.
#include "core/strings/printable.hpp"

#include <doctest/doctest.h>

using namespace capstan;

TEST_CASE("plain text, accents, other scripts and emoji are shown as they are") {
  for (const char* const text : {"", "a b\n\tc", "caf\xc3\xa9", "\xe6\x97\xa5\xe6\x9c\xac",
                                 "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x94\xac", "\xd7\xa9\xd7\x9c\xe2\x80\x8f"})
    CHECK(printable(text) == text);
}

TEST_CASE("every control character is escaped, and nothing else of its size") {
  for (unsigned c = 0; c < 0x80; ++c) {
    CAPTURE(c);
    const char byte = static_cast<char>(c);
    const bool control = (c < 0x20 && byte != '\n' && byte != '\t') || c == 0x7f;
    CHECK((printable({&byte, 1}).size() == 4) == control);
  }
  for (unsigned c = 0x80; c < 0xc0; ++c) {
    CAPTURE(c);
    const std::string character{'\xc2', static_cast<char>(c)};
    CHECK((printable(character) != character) == (c < 0xa0));
  }
  CHECK(printable("\033[2J") == "\\x1b[2J");
  CHECK(printable("a\rb") == "a\\x0db");
  CHECK(printable("\xc2\x9b"
                  "0m") == "\\u009b0m");
  CHECK(printable("\xe2\x80\xae"
                  "abc\xe2\x81\xa6") == "\\u202eabc\\u2066");
}

TEST_CASE("bytes that are not UTF-8 are escaped: some terminals obey 0x9b alone") {
  CHECK(printable("\x9b"
                  "2J") == "\\x9b2J");
  CHECK(printable("a\xff"
                  "b") == "a\\xffb");
  CHECK(printable("\xe6\x97") == "\\xe6\\x97");
  CHECK(printable("\xc0\x9b") == "\\xc0\\x9b");  // an overlong escape character
}

TEST_CASE("a line stays one line") { CHECK(printable_line("a\nb\tc\r") == "a\\nb\\tc\\x0d"); }

TEST_CASE("a word of a shell is in quotes where it must be") {
  CHECK(shell_word("runs/lr=1e-3,seed=2") == "runs/lr=1e-3,seed=2");
  CHECK(shell_word("my runs/a") == "'my runs/a'");
  CHECK(shell_word("it's $HOME") == "'it'\\''s $HOME'");
  CHECK(shell_word("") == "''");
  CHECK(shell_word("caf\xc3\xa9") == "'caf\xc3\xa9'");
}

TEST_CASE("text in pieces is the same, wherever it is cut") {
  const std::string text = "caf\xc3\xa9\033[0m\xe6\x97\xa5\xc2\x9b\x9b\xe2\x80\xae.\xf0\x9f\x91";
  for (size_t first = 0; first <= text.size(); ++first)
    for (size_t second = first; second <= text.size(); ++second) {
      PrintablePieces pieces;
      std::string out = pieces.push(text.substr(0, first));
      out += pieces.push(text.substr(first, second - first));
      out += pieces.push(text.substr(second));
      out += pieces.finish();
      REQUIRE(out == printable(text));
    }
}

TEST_CASE("columns: wide characters need two, accents none") {
  CHECK(display_columns("abc") == 3);
  CHECK(display_columns("caf\xc3\xa9") == 4);
  CHECK(display_columns("cafe\xcc\x81") == 4);
  CHECK(display_columns("\xe6\x97\xa5\xe6\x9c\xac") == 4);
  CHECK(first_columns("\xe6\x97\xa5\xe6\x9c\xac", 3) == "\xe6\x97\xa5");
  CHECK(first_columns("abc", 2) == "ab");
  CHECK(first_columns("abc", 9) == "abc");
}
