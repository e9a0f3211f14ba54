// Where the tokens of a text begin in it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizers/tokenizer.hpp"

namespace capstan {

/// Counts the characters of a text as StreamingDecoder shows it, piece by piece.
class CharacterCount {
 public:
  /// The number of characters in front of the one to which the first byte of the piece belongs.
  int64_t add(std::string_view piece);
  /// The text ends here, as what is left of a character does.
  void finish();
  int64_t count() const { return count_ + (pending_.empty() ? 0 : 1); }

 private:
  std::string pending_;  // begin of a character
  int64_t count_ = 0;
};

/// For each token, the number of characters of the text in front of it. `text`: UTF-8, of which `tokens` are made; what
/// the tokenizer does not know or has normalised has other pieces than the text. Tokens outside of the vocabulary take
/// no text.
std::vector<int64_t> token_offsets(const Tokenizer& tokenizer, std::string_view text,
                                   const std::vector<int32_t>& tokens);

}  // namespace capstan
