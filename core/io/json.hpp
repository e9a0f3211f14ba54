// Reading and writing JSON: for checkpoints, data in JSONL, tokenizers and the server. What nlohmann/json takes to
// compile is mostly its parser and writer: both are in json.cpp only. Text from outside costs no stack, however deep it
// is nested: tests/core/io/test_json.cpp, tests/fuzz/fuzz_json.cpp.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/error.hpp"

namespace capstan {

/// Limits of a JSON text, and the place that errors name.
struct JsonRule {
  std::string file = "JSON";
  int64_t line = 1;    // file line where the text begins
  size_t depth = 100;  // limit of nested lists and objects; each level costs stack where a value is used
  int64_t column = 1;  // of the line, where the text begins
};

/// Throws JsonError "file:line:column: not JSON: what is wrong", also for nesting that is too deep, a key that an
/// object has twice, and a NUL, at which the parser would take the text for finished.
nlohmann::json parse_json(std::string_view text, const JsonRule& rule = {});

/// Parses JSON; for other text, the value is_discarded().
nlohmann::json try_parse_json(std::string_view text);

class JsonError : public Error {
 public:
  using Error::Error;
};

/// One line, or with `indent` spaces for each level. Throws Error, which shows the string, where one is not UTF-8.
std::string json_text(const nlohmann::json& value, int indent = -1);

/// One line, without its end, and with a sign in place of what is not UTF-8.
std::string json_line(const nlohmann::ordered_json& value);

/// A value as messages show it: at most some sixty characters of its text.
std::string json_excerpt(const nlohmann::json& value);

/// The value, if it is a whole number within [low, high], written without point and exponent. To convert any other
/// number would be undefined or would wrap.
std::optional<int64_t> whole_number(const nlohmann::json& value, int64_t low = std::numeric_limits<int64_t>::min(),
                                    int64_t high = std::numeric_limits<int64_t>::max());

/// object[key] as a whole number; throws JsonError naming the key and the limits for any other value.
int64_t whole_number_at(const nlohmann::json& object, const char* key, int64_t low, int64_t high);

}  // namespace capstan
