#include "core/strings/pattern.hpp"

#include <cstddef>

#include "core/strings/strings.hpp"

namespace capstan {

bool matches(std::string_view text, std::string_view pattern) {
  const std::vector<std::string_view> pieces = split(pattern, "*");
  if (pieces.size() == 1) return text == pattern;
  if (!starts_with(text, pieces.front())) return false;
  size_t at = pieces.front().size();
  for (size_t i = 1; i + 1 < pieces.size(); ++i) {
    const size_t place = text.find(pieces[i], at);
    if (place == std::string_view::npos) return false;
    at = place + pieces[i].size();
  }
  return ends_with(text.substr(at), pieces.back());
}

}  // namespace capstan
