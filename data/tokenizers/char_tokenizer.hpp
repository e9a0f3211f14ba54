// Text to one token per character (`tokenizer: char`). A run keeps the vocabulary in tokenizer.json, and old ones must
// be read: tests/data/tokenizers/test_tokenizer.cpp.
#pragma once

#include <unordered_map>

#include "core/config/schema.hpp"
#include "data/tokenizers/tokenizer.hpp"

namespace capstan {

struct CharTokenizerConfig {
  static constexpr const char* type_name = "char";
};
template <class Fields>
void describe(Fields&, CharTokenizerConfig&) {}

/// One id per Unicode code point of the training text, in the order of the code points; id 0 is every other one.
class CharTokenizer final : public Tokenizer {
 public:
  static constexpr int32_t unknown = 0;

  /// Throws std::invalid_argument unless the code points are characters and ascend strictly.
  explicit CharTokenizer(std::vector<uint32_t> code_points);
  /// Throws Error for text that is not UTF-8.
  static CharTokenizer from_texts(const Texts& texts);

  std::string kind() const override { return "char"; }
  int64_t vocabulary_size() const override { return static_cast<int64_t>(code_points_.size()) + 1; }
  std::vector<int32_t> encode(std::string_view text, const std::string& file = "text") const override;
  /// The unknown id is shown as U+FFFD.
  std::string piece(int32_t id, int32_t previous) const override;
  bool needs_utf8() const override { return true; }
  size_t boundary(std::string_view text, size_t at) const override;
  int32_t start_token() const override { return id_of('\n'); }
  std::optional<int32_t> unknown_token() const override { return unknown; }

 protected:
  void save_to(nlohmann::json& json) const override;

 private:
  int32_t id_of(uint32_t code_point) const;

  std::vector<uint32_t> code_points_;
  std::unordered_map<uint32_t, int32_t> ids_;
};

}  // namespace capstan
