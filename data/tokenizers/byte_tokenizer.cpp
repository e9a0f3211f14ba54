#include "data/tokenizers/byte_tokenizer.hpp"

#include <nlohmann/json.hpp>

#include "core/io/json.hpp"

namespace capstan {

std::vector<int32_t> ByteTokenizer::encode(std::string_view text, const std::string&) const {
  std::vector<int32_t> ids(text.size());
  for (size_t i = 0; i < text.size(); ++i) ids[i] = static_cast<uint8_t>(text[i]);
  return ids;
}

std::string ByteTokenizer::piece(int32_t id, int32_t) const {
  check_id(id);
  return std::string(1, static_cast<char>(id));
}

std::string ByteTokenizer::to_json() const { return json_text(nlohmann::json{{"kind", kind()}}); }

}  // namespace capstan
