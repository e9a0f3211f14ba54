#include "data/char_tokenizer.hpp"

#include <nlohmann/json.hpp>
#include <set>

#include "core/error.hpp"
#include "data/utf8.hpp"

namespace capstan {

CharTokenizer::CharTokenizer(std::vector<uint32_t> code_points) : code_points_(std::move(code_points)) {
  for (size_t i = 0; i < code_points_.size(); ++i) {
    check(i == 0 || code_points_[i - 1] < code_points_[i], "char tokenizer: code points do not ascend at U+{:04X}",
          code_points_[i]);
    ids_[code_points_[i]] = static_cast<int32_t>(i) + 1;
  }
}

CharTokenizer CharTokenizer::from_texts(const std::vector<std::string_view>& texts) {
  std::set<uint32_t> found;
  for (const std::string_view text : texts) {
    check_utf8(text, "text");
    for (size_t at = 0; at < text.size();) {
      const Utf8Character character = first_character(text.substr(at));
      found.insert(character.code_point);
      at += character.bytes;
    }
  }
  return CharTokenizer({found.begin(), found.end()});
}

int32_t CharTokenizer::id_of(uint32_t code_point) const {
  const auto found = ids_.find(code_point);
  return found == ids_.end() ? unknown : found->second;
}

std::vector<int32_t> CharTokenizer::encode(std::string_view text, const std::string& file) const {
  check_utf8(text, file);
  std::vector<int32_t> ids;
  ids.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Utf8Character character = first_character(text.substr(at));
    ids.push_back(id_of(character.code_point));
    at += character.bytes;
  }
  return ids;
}

std::string CharTokenizer::piece(int32_t id, int32_t) const {
  check_id(id);
  std::string text;
  append_utf8(text, id == unknown ? 0xfffd : code_points_[static_cast<size_t>(id) - 1]);
  return text;
}

size_t CharTokenizer::border(std::string_view text, size_t at) const { return character_border(text, at); }

std::string CharTokenizer::to_json() const {
  return nlohmann::json{{"kind", kind()}, {"code_points", code_points_}}.dump();
}

}  // namespace capstan
