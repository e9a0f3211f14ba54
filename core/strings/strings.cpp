// Short forms of lists, counts, times and sizes for messages, and patterns with stars:
// tests/core/strings/test_text.cpp and test_pattern.cpp.
#include "core/strings/strings.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

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

std::string short_count(double count) {
  if (count >= 1e9) return fmt::format("{:.2f}G", count / 1e9);
  if (count >= 1e6) return fmt::format("{:.2f}M", count / 1e6);
  if (count >= 1e3) return fmt::format("{:.1f}k", count / 1e3);
  return fmt::format("{:.0f}", count);
}

std::string short_time(double seconds) {
  const int64_t s = std::llround(std::clamp(seconds, 0.0, 1e9));
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}m{:02}s", s / 60, s % 60);
  if (s < 86400) return fmt::format("{}h{:02}m", s / 3600, s / 60 % 60);
  return fmt::format("{}d{:02}h", s / 86400, s / 3600 % 24);
}

std::string bytes_text(double bytes) {
  if (!std::isfinite(bytes)) return "more bytes than can be counted";
  const char* const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
  size_t unit = 0;
  for (; bytes >= 1000 && unit < 6; ++unit) bytes /= 1000;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 || bytes >= 100 ? 0 : 1, units[unit]);
}

}  // namespace capstan
