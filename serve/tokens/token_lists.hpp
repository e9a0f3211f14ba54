// The lists of tokens in an answer: `logprobs` in the format of OpenAI's completions. completions.cpp fills them.
// tests/serve/test_endpoints.cpp holds names, probabilities and offsets.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/tokenizers/tokenizer.hpp"
#include "run/setup/run_model.hpp"

namespace capstan {

/// A token with the natural logarithm of its probability, and the likeliest tokens of its place.
struct ScoredToken {
  int32_t token = 0;
  double log_probability = 0;
  std::vector<std::pair<int32_t, double>> likeliest;
};

/// A token as answers show it: its text, or "bytes:\xNN" where that is a part of a character.
std::string token_text(const SavedRun& run, int32_t token, int32_t previous);

/// Bytes that text takes in JSON, without its quotes.
int64_t json_bytes(std::string_view text);
/// json_bytes() of the text of a token, on average over the vocabulary.
int64_t mean_name_bytes(const SavedRun& run);

/// The lists as text of JSON, which takes a tenth of the memory that values would. Those of a prompt are written once,
/// however many texts begin with it.
class TokenLists {
 public:
  /// `previous`: the token in front, -1 without one. `offset`: characters of the text in front of the token.
  /// `scored`: null for a token without a probability.
  void add(const SavedRun& run, int32_t token, int32_t previous, int64_t offset, const ScoredToken* scored);
  int64_t bytes() const;
  bool empty() const { return lists_[0].empty(); }
  void clear() { std::array<std::string, 4>().swap(lists_); }  // frees the memory
  /// Adds {"tokens": [...], "token_logprobs": ...}, the tokens of `front` first.
  void append_to(std::string& json, const TokenLists& front) const;

  /// What append_to() adds for a token with so many likeliest ones, about; `name_bytes`: of the text of one.
  static int64_t bytes_of_token(int64_t likeliest, int64_t name_bytes);

 private:
  std::array<std::string, 4> lists_;  // elements that commas divide
};

// Where the tokens of a text begin in it.

/// Counts the characters of a text as StreamingDecoder shows it, piece by piece.
class CharacterCount {
 public:
  /// The number of characters in front of the one to which the first byte of the piece belongs.
  int64_t add(std::string_view piece);
  /// Ends the text: what is left of a character counts, too.
  void finish();
  int64_t count() const { return count_ + (pending_.empty() ? 0 : 1); }

 private:
  std::string pending_;  // the beginning of a character that is not whole yet
  int64_t count_ = 0;
};

/// For each token, the number of characters of the text in front of it. `text`: UTF-8, of which `tokens` are made; what
/// the tokenizer does not know or has normalised has other pieces than the text. Tokens outside of the vocabulary take
/// no text.
std::vector<int64_t> token_offsets(const Tokenizer& tokenizer, std::string_view text,
                                   const std::vector<int32_t>& tokens);

}  // namespace capstan
