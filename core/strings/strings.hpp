// Lists of words in messages, file names and scripts, and parts of lines. (Not fmt::join: GCC 12 at -O3 warns inside
// fmt 9 wherever it is used.) tests/core/strings/test_text.cpp.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace capstan {

/// std::string_view has these from C++20 on.
inline bool starts_with(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }

inline bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

/// The text without these characters at both ends.
inline std::string_view trimmed(std::string_view text, std::string_view blanks) {
  const size_t begin = text.find_first_not_of(blanks);
  return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

/// A-Z as a-z; other characters stay.
inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

/// "a, b, c", of strings or of integers.
template <class Range>
std::string join(const Range& items, std::string_view separator = ", ") {
  std::string text;
  bool first = true;
  for (const auto& item : items) {
    if (!first) text += separator;
    first = false;
    if constexpr (std::is_integral_v<std::decay_t<decltype(item)>>)
      text += std::to_string(item);
    else
      text += item;
  }
  return text;
}

/// join() for names in a message: of more than 20 only the first 20, followed by how many there are.
std::string join_first(const std::vector<std::string>& names, std::string_view separator = ", ");

/// The parts between the separators, one more than there are separators. The text must outlive them; `separator` must
/// not be empty.
std::vector<std::string_view> split(std::string_view text, std::string_view separator);

/// The number, if the whole text is one: digits, perhaps with a minus in front.
inline std::optional<int64_t> parse_integer(std::string_view text) {
  int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace capstan
