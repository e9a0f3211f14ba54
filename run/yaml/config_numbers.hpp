// Numbers as configuration files spell them. tests/run/yaml/test_config_read.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

namespace capstan {

/// Parses all of `text`. Decimal, an optional sign, for doubles a fraction and an exponent; inf, nan, .inf and .nan are
/// doubles too. Returns errc{}, invalid_argument (not a number) or result_out_of_range.
std::errc parse_number(std::string_view text, double& value);
std::errc parse_number(std::string_view text, std::int64_t& value);

/// The shortest text that parse_number() turns into the same double.
std::string format_number(double value);

}  // namespace capstan
