// Escapes the characters that a terminal obeys instead of showing, and bytes that are no UTF-8.
// tests/core/strings/test_printable.cpp.
#include "core/strings/printable.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "core/base/error.hpp"
#include "core/strings/utf8.hpp"

namespace capstan {
namespace {

bool is_plain(char c) { return (c >= ' ' && c <= '~') || c == '\n' || c == '\t'; }

/// Does a terminal obey the character instead of showing it?
bool is_obeyed(uint32_t c) {
  const bool control = c < 0x20 || (c >= 0x7f && c <= 0x9f);
  const bool direction = (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
  return control || direction;
}

std::string escaped_bytes(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) out += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<uint8_t>(byte)));
  return out;
}

/// Appends what may be shown of the text; returns the bytes at its end that begin a character without finishing it.
std::string_view append_printable(std::string& out, std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const auto plain = std::find_if_not(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), is_plain);
    const auto end = static_cast<size_t>(plain - text.begin());
    out.append(text.substr(at, end - at));
    at = end;
    if (at == text.size()) break;
    const Utf8Character character = first_character(text.substr(at));
    const std::string_view bytes = text.substr(at, character.bytes);
    if (character.state == Utf8Character::State::cut_off) return bytes;
    if (character.state == Utf8Character::State::invalid)
      out += escaped_bytes(bytes);
    else if (is_obeyed(character.code_point))
      out += character.code_point < 0x80 ? escaped_bytes(bytes) : fmt::format("\\u{:04x}", character.code_point);
    else
      out += bytes;
    at += character.bytes;
  }
  return {};
}

size_t columns_of(const Utf8Character& character) {
  if (character.state != Utf8Character::State::valid) return 1;
  return static_cast<size_t>(std::max(0, utf8proc_charwidth(static_cast<utf8proc_int32_t>(character.code_point))));
}

/// Bytes and columns of the longest beginning of a line that needs at most `most` columns.
std::pair<size_t, size_t> measured(std::string_view line, size_t most) {
  size_t bytes = 0, columns = 0;
  while (bytes < line.size()) {
    const Utf8Character character = first_character(line.substr(bytes));
    const size_t width = columns_of(character);
    if (width > most - columns) break;
    columns += width;
    bytes += character.bytes;
  }
  return {bytes, columns};
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  out += escaped_bytes(append_printable(out, text));
  return out;
}

std::string printable_line(std::string_view text) {
  std::string out;
  for (const char c : printable(text))
    if (c == '\n' || c == '\t')
      out += c == '\n' ? "\\n" : "\\t";
    else
      out += c;
  return out;
}

std::string PrintablePieces::push(std::string_view piece) {
  const std::string text = begun_.append(piece);
  std::string out;
  begun_ = append_printable(out, text);
  return out;
}

std::string PrintablePieces::finish() {
  const std::string left = escaped_bytes(begun_);
  begun_.clear();
  return left;
}

std::string_view first_columns(std::string_view line, size_t columns) {
  return line.substr(0, measured(line, columns).first);
}

size_t display_columns(std::string_view line) { return measured(line, SIZE_MAX).second; }

std::string shell_word(const std::string& text) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_-./,:=+@%").find(c) < std::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + '\'';
}

}  // namespace capstan
