// Short forms of lists for messages: tests/core/strings/test_text.cpp.
#include "core/strings/strings.hpp"

#include <fmt/core.h>

#include "core/base/error.hpp"

namespace capstan {

std::string join_first(const std::vector<std::string>& names, std::string_view separator) {
  constexpr std::size_t shown = 20;  // so that a list of thousands does not bury its message
  if (names.size() <= shown) return join(names, separator);
  const std::vector<std::string> first(names.begin(), names.begin() + shown);
  return fmt::format("{}, ... ({} in all)", join(first, separator), names.size());
}

std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  for (size_t at = 0;;) {
    const size_t end = text.find(separator, at);
    parts.push_back(text.substr(at, end - at));
    if (end == std::string_view::npos) return parts;
    at = end + separator.size();
  }
}

}  // namespace capstan
