// Tokenizers of generated data: tokens are words between blanks. For data/generated, and for `tokenizer: saved`, which
// reads ids that another program wrote. tests/data/tokenizers/test_tokenizer.cpp and tests/data/test_listops.cpp.
#pragma once

#include "data/tokenizers/tokenizer.hpp"

namespace capstan {

/// The base of both tokenizers here: a text may be cut between any two words.
class BlankSeparatedTokenizer : public Tokenizer {
 public:
  bool needs_utf8() const override { return false; }
  size_t boundary(std::string_view text, size_t at) const override;
};

/// The 15 tokens of ListOps: ids 0-9 are the digits, then `[MIN [MAX [MED [SM ]`. Parentheses, which only group, are
/// left out; `X` is read as `]`.
class ListOpsTokenizer final : public BlankSeparatedTokenizer {
 public:
  static constexpr int32_t minimum = 10, maximum = 11, median = 12, sum_modulo_ten = 13, end = 14;
  static constexpr int64_t size = 15;

  std::string kind() const override { return "listops"; }
  int64_t vocabulary_size() const override { return size; }
  /// Throws Error for a word that is not a token.
  std::vector<int32_t> encode(std::string_view text, const std::string& file = "text") const override;
  std::string piece(int32_t id, int32_t previous) const override;
  int32_t start_token() const override { return end; }

 protected:
  void save_to(nlohmann::json&) const override {}
};

/// Tokens without any text of their own: id n is written as the number n. For generated sequences.
class NumberTokenizer final : public BlankSeparatedTokenizer {
 public:
  /// Throws std::invalid_argument unless size > 0.
  explicit NumberTokenizer(int64_t size);

  std::string kind() const override { return "number"; }
  int64_t vocabulary_size() const override { return size_; }
  /// Numbers between blanks. Throws Error for a word that is not a number below the vocabulary's size.
  std::vector<int32_t> encode(std::string_view text, const std::string& file = "text") const override;
  std::string piece(int32_t id, int32_t previous) const override;
  int32_t start_token() const override { return 0; }

 protected:
  void save_to(nlohmann::json& json) const override;

 private:
  int64_t size_;
};

}  // namespace capstan
