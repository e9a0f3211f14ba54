// core/io/json: what is read can be written, and what is written is read as the same.
#include <nlohmann/json.hpp>

#include "core/io/json.hpp"
#include "tests/fuzz/target.hpp"

namespace capstan::fuzz {
namespace {

void read_json(std::string_view input) {
  const nlohmann::json json = parse_json(input);
  require(json_excerpt(json).size() < 700, "an excerpt is short");  // 60 characters, escaped
  whole_number(json);
  const nlohmann::json again = must("JSON that was written is read", [&] { return parse_json(json_text(json)); });
  require(again == json, "JSON that was written is read as the same");
}

const Registered json_target("json", read_json);

}  // namespace
}  // namespace capstan::fuzz
