// A tokenizer with one id for each ASCII character (docs/adding.md, a tokenizer).
#pragma once

#include "core/strings/utf8.hpp"
#include "data/tokenizers/tokenizer.hpp"

namespace capstan {

struct AsciiTokenizerConfig {
  static constexpr const char* type_name = "ascii";
};
template <class Fields>
void describe(Fields&, AsciiTokenizerConfig&) {}

/// 128 ids, the values of the bytes. Each other character is 26, the control character SUBSTITUTE.
class AsciiTokenizer final : public Tokenizer {
 public:
  std::string kind() const override { return AsciiTokenizerConfig::type_name; }
  int64_t vocabulary_size() const override { return 128; }
  std::vector<int32_t> encode(std::string_view text, const std::string& file = "text") const override {
    check_utf8(text, file);
    std::vector<int32_t> ids;
    for (const char c : text)
      if (const auto byte = static_cast<uint8_t>(c); byte < 0x80 || byte >= 0xc0)  // other bytes continue a character
        ids.push_back(byte < 0x80 ? byte : 26);
    return ids;
  }
  std::string piece(int32_t id, int32_t) const override {
    check_id(id);
    return std::string(1, static_cast<char>(id));
  }
  bool needs_utf8() const override { return true; }
  size_t boundary(std::string_view text, size_t at) const override { return character_boundary(text, at); }
  int32_t start_token() const override { return '\n'; }
  std::optional<int32_t> unknown_token() const override { return 26; }

 protected:
  void save_to(nlohmann::json&) const override {}  // it has no settings
};

}  // namespace capstan
