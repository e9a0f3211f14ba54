// Bytes of a text that are not UTF-8 are replaced in JSON. tests/cli/runs/test_predictions.cpp.
#include "run/predictions/text_lines.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace capstan {
namespace {

using Json = nlohmann::ordered_json;

std::string line_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace

std::string score_tsv(const TextScore& score) {
  return fmt::format("{:.6f}\t{:.6f}\t{}\n", score.log_probability, score.per_token(), score.tokens);
}

std::string score_json(const TextScore& score, const InputText& text) {
  Json json{{"log_probability", score.log_probability},
            {"per_token", score.per_token()},
            {"tokens", score.tokens},
            {"text", text.text}};
  if (!text.label.empty()) json["target"] = text.label;
  return line_of(json);
}

std::string vector_json(const std::vector<float>& vector, const InputText& text) {
  return line_of({{"vector", vector}, {"text", text.text}});
}

}  // namespace capstan
