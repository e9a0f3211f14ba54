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
  std::vector<int32_t> encode(std::string_view text, const std::string& = "text") const override {
    const auto* const bytes = reinterpret_cast<const uint8_t*>(text.data());
    return {bytes, bytes + text.size()};
  }
  std::string piece(int32_t id, int32_t) const override {
    check_id(id);
    return std::string(1, static_cast<char>(id));
  }
  bool needs_utf8() const override { return false; }
  size_t boundary(std::string_view text, size_t at) const override { return at < text.size() ? at : text.size(); }
  bool tokens_are_bytes() const override { return true; }
  int32_t start_token() const override { return '\n'; }

 protected:
  void save_to(nlohmann::json&) const override {}
};

}  // namespace capstan
