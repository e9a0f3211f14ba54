#pragma once

#include "data/tokenizers/tokenizer.hpp"

namespace capstan {

/// Tokens without any text of their own: id n is written as the number n. For generated sequences.
class NumberTokenizer final : public Tokenizer {
 public:
  /// Throws std::invalid_argument unless size > 0.
  explicit NumberTokenizer(int64_t size);

  std::string kind() const override { return "number"; }
  int64_t vocabulary_size() const override { return size_; }
  /// Numbers between blanks. Throws Error for a word that is not a number below the vocabulary's size.
  std::vector<int32_t> encode(std::string_view text, const std::string& file = "text") const override;
  std::string piece(int32_t id, int32_t previous) const override;
  bool needs_utf8() const override { return false; }
  size_t boundary(std::string_view text, size_t at) const override;
  int32_t start_token() const override { return 0; }
  std::string to_json() const override;

 private:
  int64_t size_;
};

}  // namespace capstan
