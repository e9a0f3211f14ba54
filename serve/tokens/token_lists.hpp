// The lists of tokens in an answer: `logprobs` in the format of OpenAI's completions. completions.cpp fills them.
// tests/serve/test_endpoints.cpp holds names, probabilities and offsets.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "run/setup/saved_run.hpp"

namespace capstan {

/// A token with the natural logarithm of its probability, and the likeliest tokens of its place.
struct ScoredToken {
  int32_t token = 0;
  double log_probability = 0;
  std::vector<std::pair<int32_t, double>> likeliest;
};

/// A token as answers show it: its text, or "bytes:\xNN" where that is a part of a character.
std::string token_text(const SavedRun& run, int32_t token, int32_t previous);
/// The text of the tokens from number `first` on, without those that have none.
std::string text_of_tokens(const SavedRun& run, const std::vector<int32_t>& tokens, size_t first = 0);

/// Counts the characters of a text as StreamingDecoder shows it, piece by piece.
class CharacterCount {
 public:
  /// The number of characters in front of the one to which the first byte of the piece belongs.
  int64_t add(std::string_view piece);
  /// Ends the text: what is left of a character counts, too.
  void finish();

 private:
  std::string pending_;  // the beginning of a character that is not whole yet
  int64_t count_ = 0;
};

/// The lists as text of JSON, which takes a tenth of the memory that values would. Those of a prompt are written once,
/// however many texts begin with it.
class TokenLists {
 public:
  /// Adds the token that is next in the text. `scored`: null for one without a probability.
  void add(const SavedRun& run, int32_t token, const ScoredToken* scored);
  /// What is added from now on follows the text of `front`.
  void go_on_after(const TokenLists& front);
  /// The token in front of the next one, which its text may depend on; -1 without one.
  void set_previous(const SavedRun& run, int32_t token);
  int64_t bytes() const;
  bool empty() const { return lists_[0].empty(); }
  void clear() { std::array<std::string, 4>().swap(lists_); }  // frees the memory; the text goes on
  /// Adds {"tokens": [...], "token_logprobs": ...} to JSON, the tokens of `front` first.
  void append_to(std::string& json, const TokenLists& front) const;

 private:
  std::array<std::string, 4> lists_;  // elements that commas divide
  CharacterCount characters_;
  int32_t previous_ = -1;
};

}  // namespace capstan
