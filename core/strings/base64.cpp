// Base64 of RFC 4648 with padding; only what to_base64() writes is read. tests/core/strings/test_text.cpp.
#include "core/strings/base64.hpp"

#include <cstdint>

#include "core/base/error.hpp"

namespace capstan {
namespace {

constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const std::string_view three = bytes.substr(at, 3);
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i) bits = bits << 8 | (i < three.size() ? static_cast<uint8_t>(three[i]) : 0);
    for (size_t i = 0; i < 4; ++i) text.push_back(i <= three.size() ? letters[bits >> (18 - 6 * i) & 63] : '=');
  }
  return text;
}

std::string from_base64(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  int count = 0;  // bits that do not fill a byte yet
  for (const char letter : text.substr(0, text.find('='))) {
    const size_t value = letters.find(letter);
    if (value == std::string_view::npos) throw Error("base64: invalid character");
    bits = (bits << 6 | static_cast<uint32_t>(value)) & 0xffff;  // at most 12 bits wait; older ones need not be kept
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>(bits >> count & 0xff));
  }
  // Also refuses text after a '=' and bits that belong to no byte.
  if (to_base64(bytes) != text) throw Error("base64: truncated or not padded");
  return bytes;
}

}  // namespace capstan
