// A sequence is valid if its second byte is within the limits of its first (table 3-7) and the others are 80..BF. Runs
// of ASCII without line ends, which most texts are, are skipped eight bytes at a time.
#include "core/strings/utf8.hpp"

#include <fmt/core.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstring>

#include "core/base/error.hpp"

namespace capstan {
namespace {

/// What the first byte of a sequence says of the rest.
struct Lead {
  size_t length = 0;                // 0: no sequence begins with this byte
  uint8_t low = 0x80, high = 0xbf;  // limits of the second byte; they exclude overlong forms and surrogates
};

Lead lead(uint8_t byte) {
  if (byte < 0x80) return {1};
  if (byte < 0xc2) return {};
  if (byte < 0xe0) return {2};
  if (byte == 0xe0) return {3, 0xa0, 0xbf};
  if (byte == 0xed) return {3, 0x80, 0x9f};
  if (byte < 0xf0) return {3};
  if (byte == 0xf0) return {4, 0x90, 0xbf};
  if (byte < 0xf4) return {4};
  if (byte == 0xf4) return {4, 0x80, 0x8f};
  return {};
}

/// Number of leading bytes that are ASCII and not line ends, in multiples of 8: the fast path for most texts.
size_t plain_front(std::string_view text) {
  constexpr uint64_t ones = 0x0101010101010101, highs = 0x8080808080808080, line_ends = ones * '\n';
  size_t at = 0;
  for (uint64_t word = 0; at + sizeof(word) <= text.size(); at += sizeof(word)) {
    std::memcpy(&word, text.data() + at, sizeof(word));
    const uint64_t other = word ^ line_ends;  // a zero byte is a line end
    if (((word | ((other - ones) & ~other)) & highs) != 0) break;
  }
  return at;
}

}  // namespace

Utf8Character first_character(std::string_view text) {
  check(!text.empty(), "utf8: the text is empty");
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  using State = Utf8Character::State;
  const Lead begin = lead(byte(0));
  if (begin.length == 0) return {State::invalid, 0, 1};
  if (begin.length == 1) return {State::valid, byte(0), 1};
  uint32_t code_point = byte(0) & (0x7fu >> begin.length);
  for (size_t i = 1; i < begin.length; ++i) {
    if (i == text.size()) return {State::cut_off, 0, i};
    const uint8_t low = i == 1 ? begin.low : 0x80, high = i == 1 ? begin.high : 0xbf;
    if (byte(i) < low || byte(i) > high) return {State::invalid, 0, i};
    code_point = (code_point << 6) | (byte(i) & 0x3f);
  }
  return {State::valid, code_point, begin.length};
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Character next = first_character(text);
    if (next.state != Utf8Character::State::valid) return false;
    text.remove_prefix(next.bytes);
  }
  return true;
}

const char* wide_encoding(std::string_view content) {
  const std::string_view head = content.substr(0, wide_head), mark = head.substr(0, 4);
  // The mark of UTF-16 in little-endian order is the beginning of that of UTF-32.
  if (mark == std::string_view("\xff\xfe\0\0", 4) || mark == std::string_view("\0\0\xfe\xff", 4)) return "UTF-32";
  if (mark.substr(0, 2) == "\xff\xfe" || mark.substr(0, 2) == "\xfe\xff") return "UTF-16";
  size_t nuls[4] = {0, 0, 0, 0};  // by the places of bytes in units of four
  for (size_t i = 0; i < head.size(); ++i) nuls[i % 4] += head[i] == '\0';
  const size_t units = head.size() / 4, most = units - units / 8, few = units / 8;
  if (units >= 2 && nuls[0] >= most && nuls[1] >= most && nuls[3] <= few) return "UTF-32BE";
  if (units >= 2 && nuls[3] >= most && nuls[2] >= most && nuls[0] <= few) return "UTF-32LE";
  const size_t even = nuls[0] + nuls[2], odd = nuls[1] + nuls[3];
  if (head.size() < 8 || 4 * std::max(even, odd) <= head.size() || 8 * std::min(even, odd) >= std::max(even, odd))
    return nullptr;
  return even > odd ? "UTF-16BE" : "UTF-16LE";
}

void check_utf8(std::string_view text, const std::string& file, TextPlace& place) {
  for (size_t at = 0; at < text.size();) {
    if (const size_t plain = plain_front(text.substr(at)); plain > 0) {
      place.column += static_cast<int64_t>(plain);
      at += plain;
      continue;
    }
    const Utf8Character character = first_character(text.substr(at));
    if (character.state != Utf8Character::State::valid)
      throw Error(
          fmt::format("{}:{}:{}: byte 0x{:02x} is not valid UTF-8; use the tokenizer 'byte', which reads any file, or "
                      "convert the file to UTF-8",
                      file, place.line, place.column, static_cast<uint8_t>(text[at])));
    if (text[at] == '\n') {
      ++place.line;
      place.column = 1;
    } else {
      ++place.column;
    }
    at += character.bytes;
  }
}

void check_utf8(std::string_view text, const std::string& file, int64_t first_line) {
  TextPlace place{first_line, 1};
  check_utf8(text, file, place);
}

void check_name(std::string_view name, const std::string& place, const char* what) {
  if (is_utf8(name)) return;
  std::string shown;
  for (const char c : name) {
    const auto byte = static_cast<uint8_t>(c);
    shown += byte >= 0x20 && byte < 0x7f ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
  }
  throw Error(fmt::format("{}: {} '{}' is not valid UTF-8; convert the file, as with iconv -f LATIN1 -t UTF-8", place,
                          what, shown));
}

void append_utf8(std::string& text, uint32_t code_point) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code_point), bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(count));
}

size_t character_boundary(std::string_view text, size_t at) {
  if (at >= text.size()) return text.size();
  while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80) --at;
  return at;
}

}  // namespace capstan
