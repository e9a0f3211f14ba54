// Counts what is unusual in the bytes of files, piece by piece, and says it in words.
// tests/data/labelled/test_checks.cpp and tests/cli/inputs/test_data_check.cpp.
#include "data/checks/report.hpp"

#include <algorithm>
#include <utility>

#include "core/base/error.hpp"
#include "core/strings/strings.hpp"
#include "core/strings/utf8.hpp"

namespace capstan {
namespace {

constexpr std::string_view mark = "\xef\xbb\xbf";
/// Bytes of a piece that are kept for the next one: one less than the longest sequence that is looked for.
constexpr size_t kept = 4;

/// Does a text begin with "Ã" or "Â" and a character that stands for a byte 80 to BF, or with "â€"?
bool is_mojibake(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : 0; };
  if (byte(0) != 0xc3) return false;
  if (byte(1) == 0x82 || byte(1) == 0x83) return byte(2) == 0xc2 && byte(3) >= 0x80 && byte(3) <= 0xbf;
  return byte(1) == 0xa2 && byte(2) == 0xe2 && byte(3) == 0x82 && byte(4) == 0xac;
}

std::string counted(int64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

std::string percent(double part) { return fmt::format("{:.3g} %", 100 * part); }

std::string FirstFew::text(const char* separator) const {
  return join(first_, separator) + (count_ > first_.size() ? fmt::format("{}...", separator) : "");
}

std::string EncodingFacts::remarks() const {
  std::vector<std::string> lines;
  if (wide != nullptr) lines.push_back(fmt::format("{}, not UTF-8", wide));
  if (bom) lines.emplace_back("byte order mark");
  if (invalid > 0) lines.push_back(counted(invalid, "byte") + " not UTF-8");
  if (nul > 0) lines.push_back(counted(nul, "NUL byte"));
  if (crlf > 0 && lf == 0) lines.emplace_back("line ends are CRLF");
  if (mixed_line_ends()) lines.push_back(fmt::format("mixed line ends ({} LF, {} CRLF)", lf, crlf));
  if (mojibake > 0) lines.push_back(counted(mojibake, "wrongly converted character") + " such as \"\xc3\x83\xc2\xa9\"");
  return join(lines);
}

void EncodingCheck::push(std::string_view piece) {
  if (head_.size() < wide_head) head_.append(piece.substr(0, wide_head - head_.size()));
  facts_.bytes += static_cast<int64_t>(piece.size());
  const std::string text = std::exchange(begun_, "").append(piece);
  begun_ = text.substr(count(text, text.size() - std::min(kept, text.size())));
}

EncodingFacts EncodingCheck::finish() {
  count(begun_, begun_.size());
  begun_.clear();
  facts_.bom = starts_with(head_, mark);
  facts_.wide = wide_encoding(head_);
  return facts_;
}

/// Counts what begins before `limit`; returns where it ends.
size_t EncodingCheck::count(std::string_view text, size_t limit) {
  size_t at = 0;
  while (at < limit) {
    const char c = text[at];
    if ((c >= ' ' && c <= '~') || c == '\t') {
      ++at;
    } else if (c == '\r' && at + 1 < text.size() && text[at + 1] == '\n') {
      ++facts_.crlf;
      at += 2;
    } else if (static_cast<uint8_t>(c) < 0x80) {
      if (c == '\n') ++facts_.lf;
      if (c == '\0') ++facts_.nul;
      ++at;
    } else {
      const Utf8Character character = first_character(text.substr(at));
      if (character.state != Utf8Character::State::valid) facts_.invalid += static_cast<int64_t>(character.bytes);
      if (is_mojibake(text.substr(at))) ++facts_.mojibake;
      at += character.bytes;
    }
  }
  return at;
}

}  // namespace capstan
