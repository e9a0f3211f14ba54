// core/strings/utf8, base64 and decimal numbers.
#include "core/base/error.hpp"
#include "core/strings/base64.hpp"
#include "core/strings/strings.hpp"
#include "core/strings/utf8.hpp"
#include "tests/fuzz/target.hpp"

namespace capstan::fuzz {
namespace {

/// Does every character decode to the bytes that encode it?
bool is_utf8(std::string_view text) {
  std::string again;
  for (size_t at = 0; at < text.size();) {
    const Utf8Character character = first_character(text.substr(at));
    require(character.bytes > 0 && character.bytes <= text.size() - at, "a character lies within the text");
    if (character.state != Utf8Character::State::valid) return false;
    append_utf8(again, character.code_point);
    at += character.bytes;
  }
  require(again == text, "a character has one encoding");
  return true;
}

void read_utf8(std::string_view input) {
  parse_integer(input);
  require(from_base64(to_base64(input)) == input, "base64 gives back what it was given");
  try {
    require(to_base64(from_base64(input)) == input, "base64 has one form");
  } catch (const Error&) {
  }
  const size_t middle = input.size() / 2, cut = character_boundary(input, middle);
  require(cut <= middle || middle >= input.size(), "a boundary is not after the place");
  const bool valid = is_utf8(input);
  bool accepted = true;
  try {
    check_utf8(input, "input");
  } catch (const Error&) {
    accepted = false;
  }
  require(accepted == valid, "check_utf8() and first_character() agree");
  if (!valid) return;
  TextPlace whole, parts;
  check_utf8(input, "input", whole);
  check_utf8(input.substr(0, cut), "input", parts);
  check_utf8(input.substr(cut), "input", parts);
  require(whole.line == parts.line && whole.column == parts.column, "places do not depend on the cut");
}

const Registered utf8_target("utf8", read_utf8);

}  // namespace
}  // namespace capstan::fuzz
