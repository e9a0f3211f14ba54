#include "core/strings/pattern.hpp"

#include <algorithm>

#include "core/strings/affixes.hpp"
#include "core/strings/join.hpp"

namespace capstan {
std::optional<std::vector<std::string_view>> match_stars(std::string_view text, std::string_view pattern) {
  const std::vector<std::string_view> pieces = split(pattern, "*");
  std::vector<std::string_view> stars;
  if (pieces.size() == 1) return text == pattern ? std::make_optional(stars) : std::nullopt;
  if (!starts_with(text, pieces.front())) return std::nullopt;
  size_t at = pieces.front().size();
  for (size_t i = 1; i + 1 < pieces.size(); ++i) {
    const size_t found = text.find(pieces[i], at);
    if (found == std::string_view::npos) return std::nullopt;
    stars.push_back(text.substr(at, found - at));
    at = found + pieces[i].size();
  }
  const std::string_view rest = text.substr(at);
  if (!ends_with(rest, pieces.back())) return std::nullopt;
  stars.push_back(rest.substr(0, rest.size() - pieces.back().size()));
  return stars;
}

size_t star_count(std::string_view pattern) {
  return static_cast<size_t>(std::count(pattern.begin(), pattern.end(), '*'));
}

std::optional<std::string> renamed(std::string_view name, std::string_view from, std::string_view to) {
  const auto stars = match_stars(name, from);
  if (!stars) return std::nullopt;
  const std::vector<std::string_view> pieces = split(to, "*");
  std::string result(pieces.front());
  for (size_t i = 1; i < pieces.size(); ++i) {
    if (i <= stars->size()) result += (*stars)[i - 1];
    result += pieces[i];
  }
  return result;
}

}  // namespace capstan
