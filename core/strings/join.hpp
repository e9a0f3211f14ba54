// Lists of words in messages, file names and scripts, and parts of lines. (Not fmt::join:
// GCC 12 at -O3 warns inside fmt 9 wherever it is used.)
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace capstan {

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

/// The same for names in a message: of more than 20 only the first 20, followed by their count.
std::string join_first(const std::vector<std::string>& names, std::string_view separator = ", ");

/// The parts between the separators, one more than there are separators. The text must outlive them.
std::vector<std::string_view> split(std::string_view text, std::string_view separator);

}  // namespace capstan
