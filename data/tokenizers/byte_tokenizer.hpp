#pragma once

#include "data/tokenizers/tokenizer.hpp"

namespace capstan {

struct ByteTokenizerConfig {
  static constexpr const char* type_name = "byte";
};
template <class Fields>
void describe(Fields&, ByteTokenizerConfig&) {}

/// 256 ids, the values of the bytes. Reads anything.
class ByteTokenizer final : public Tokenizer {
 public:
  std::string kind() const override { return "byte"; }
  int64_t vocabulary_size() const override { return 256; }
  std::vector<int32_t> encode(std::string_view text, const std::string& file = "text") const override;
  std::string piece(int32_t id, int32_t previous) const override;
  bool needs_utf8() const override { return false; }
  size_t boundary(std::string_view text, size_t at) const override { return at < text.size() ? at : text.size(); }
  int32_t start_token() const override { return '\n'; }
  std::string to_json() const override;
};

}  // namespace capstan
