// Text whose tokens are separated by blanks, as of ListOps and of numbers.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/core.h>

namespace capstan {

constexpr std::string_view token_blanks = " \t\r\n";

/// body(word, at) for every word between blanks, with its place in the text.
template <class Body>
void for_each_blank_separated(std::string_view text, const Body& body) {
  for (size_t at = text.find_first_not_of(token_blanks); at != std::string_view::npos;
       at = text.find_first_not_of(token_blanks, at)) {
    const size_t stop = std::min(text.find_first_of(token_blanks, at), text.size());
    body(text.substr(at, stop - at), at);
    at = stop;
  }
}

/// The last place at or before `at` that is not inside a word.
inline size_t blank_separated_boundary(std::string_view text, size_t at) {
  if (at >= text.size()) return text.size();
  while (at > 0 && token_blanks.find(text[at - 1]) == std::string_view::npos) --at;
  return at;
}

/// "file:line:column" of a byte of the text.
inline std::string place_in_text(const std::string& file, std::string_view text, size_t at) {
  return fmt::format("{}:{}:{}", file, 1 + std::count(text.begin(), text.begin() + static_cast<int64_t>(at), '\n'),
                     at - (text.rfind('\n', at) + 1) + 1);
}

}  // namespace capstan
