// Reads and writes numbers without the locale. tests/run/yaml/test_config_read.cpp.
#include "run/yaml/config_numbers.hpp"

#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <limits>

namespace capstan {
namespace {

/// std::from_chars for the whole of `text`, a leading plus allowed.
template <class T>
std::errc parse_all(std::string_view text, T& value) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return end == text.data() + text.size() ? error : std::errc::invalid_argument;
}

}  // namespace

std::errc parse_number(std::string_view text, double& value) {
  std::string_view word = text;
  const bool negative = !word.empty() && word[0] == '-';
  if (negative) word.remove_prefix(1);
  if (word == "inf" || word == ".inf") {
    value = std::copysign(std::numeric_limits<double>::infinity(), negative ? -1.0 : 1.0);
    return {};
  }
  if (text == "nan" || text == ".nan") {
    value = std::numeric_limits<double>::quiet_NaN();
    return {};
  }
  if (word.find_first_not_of("0123456789+-.eE") != std::string_view::npos) return std::errc::invalid_argument;
  return parse_all(text, value);
}

std::errc parse_number(std::string_view text, std::int64_t& value) { return parse_all(text, value); }

std::string format_number(double value) {
  if (std::isnan(value)) return ".nan";
  if (std::isinf(value)) return value > 0 ? ".inf" : "-.inf";
  return fmt::format("{}", value);
}

}  // namespace capstan
