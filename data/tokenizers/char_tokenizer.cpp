// A token is a Unicode code point: id 0 is unknown, then the code points of the training text in ascending order.
// tests/data/tokenizers/test_tokenizer.cpp.
#include "data/tokenizers/char_tokenizer.hpp"

#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.hpp"
#include "core/strings/utf8.hpp"

namespace capstan {

CharTokenizer::CharTokenizer(std::vector<uint32_t> code_points) : code_points_(std::move(code_points)) {
  for (size_t i = 0; i < code_points_.size(); ++i) {
    check(code_points_[i] <= 0x10ffff && (code_points_[i] < 0xd800 || code_points_[i] > 0xdfff),
          "char tokenizer: U+{:04X} is not a character", code_points_[i]);
    check(i == 0 || code_points_[i - 1] < code_points_[i], "char tokenizer: code points do not ascend at U+{:04X}",
          code_points_[i]);
    ids_[code_points_[i]] = static_cast<int32_t>(i) + 1;
  }
}

CharTokenizer CharTokenizer::from_texts(const Texts& texts) {
  const CharTokenizer empty({});
  std::set<uint32_t> points;
  for (size_t i = 0; i < texts.count(); ++i) {
    TextPlace place;
    for_blocks(texts.open(i), boundary_of(empty), [&](std::string_view text) {
      check_utf8(text, "text", place);
      for_each_character(text, [&](const Utf8Character& c, std::string_view) { points.insert(c.code_point); });
    });
  }
  return CharTokenizer({points.begin(), points.end()});
}

int32_t CharTokenizer::id_of(uint32_t code_point) const {
  const auto found = ids_.find(code_point);
  return found == ids_.end() ? unknown : found->second;
}

std::vector<int32_t> CharTokenizer::encode(std::string_view text, const std::string& file) const {
  check_utf8(text, file);
  std::vector<int32_t> ids;
  ids.reserve(text.size());
  for_each_character(text, [&](const Utf8Character& c, std::string_view) { ids.push_back(id_of(c.code_point)); });
  return ids;
}

std::string CharTokenizer::piece(int32_t id, int32_t) const {
  check_id(id);
  std::string text;
  append_utf8(text, id == unknown ? 0xfffd : code_points_[static_cast<size_t>(id) - 1]);
  return text;
}

size_t CharTokenizer::boundary(std::string_view text, size_t at) const { return character_boundary(text, at); }

void CharTokenizer::save_to(nlohmann::json& json) const { json["code_points"] = code_points_; }

}  // namespace capstan
