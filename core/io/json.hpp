// Reading and writing JSON. What nlohmann/json takes to compile is mostly its parser and writer: both are in json.cpp only.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace capstan {

/// Throws nlohmann::json::parse_error.
nlohmann::json parse_json(std::string_view text);

/// The same, but what is no JSON gives a value that is_discarded().
nlohmann::json try_parse_json(std::string_view text);

/// One line, or with `indent` spaces for each level. Throws nlohmann::json::type_error where a string is not UTF-8.
std::string json_text(const nlohmann::json& json, int indent = -1);

}  // namespace capstan
