#include "core/io/json.hpp"

#include <nlohmann/json.hpp>

namespace capstan {

nlohmann::json parse_json(std::string_view text) { return nlohmann::json::parse(text); }

nlohmann::json try_parse_json(std::string_view text) { return nlohmann::json::parse(text, nullptr, false); }

std::string json_text(const nlohmann::json& json, int indent) { return json.dump(indent); }

}  // namespace capstan
