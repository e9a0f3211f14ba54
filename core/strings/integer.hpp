#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace capstan {

/// The number, if the whole text is one: digits, perhaps with a minus in front.
inline std::optional<int64_t> parse_integer(std::string_view text) {
  int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace capstan
