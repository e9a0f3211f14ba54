#include "run/report/html.hpp"

#include "core/strings/utf8.hpp"

namespace capstan {
namespace {

const char* entity(uint32_t code_point) {
  switch (code_point) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return nullptr;
  }
}

/// Characters that HTML does not allow.
bool is_control(uint32_t code_point) {
  return (code_point < 0x20 && code_point != '\n' && code_point != '\t') || (code_point >= 0x7F && code_point < 0xA0);
}

}  // namespace

std::string escaped_short(std::string_view text, size_t characters) {
  std::string out;
  for (size_t count = 0; !text.empty(); ++count) {
    if (count == characters) return out + "\xE2\x80\xA6";
    const Utf8Character next = first_character(text);
    const bool shown = next.state == Utf8Character::State::valid && !is_control(next.code_point);
    if (!shown)
      out += "\xEF\xBF\xBD";
    else if (const char* const name = entity(next.code_point); name != nullptr)
      out += name;
    else
      out += text.substr(0, next.bytes);
    text.remove_prefix(next.state == Utf8Character::State::cut_off ? text.size() : next.bytes);
  }
  return out;
}

std::string escaped(std::string_view text) { return escaped_short(text, text.size()); }

}  // namespace capstan
