// Text as one long row of tokens per split, and what is known of it: what load_text() gives, and what windows are cut
// from.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/batches/source_content.hpp"
#include "data/files/split.hpp"
#include "data/files/token_row.hpp"

namespace capstan {

/// The tokens of one split.
struct TextCorpus {
  /// An entry of data.train with a weight.
  struct Source {
    std::string name;
    double weight = 1;
    int64_t begin = 0, end = 0;  // its tokens
  };
  TokenRow tokens;
  int64_t files = 0, bytes = 0, words = 0;  // words: of held-out text, with ends of lines, as WikiText counts them
  std::optional<int32_t> end_of_document;   // the token after every document, where the text has documents
  std::vector<Source> sources;  // of training text with weights, in the order of their tokens; otherwise empty

  int64_t size() const { return tokens.size(); }
};

/// A large text has no warnings. Those of others depend on the text, documents and the tokenizer.
struct TextData : PerSplit<TextCorpus>, SourceContent {
  std::string fingerprint;  // XXH3-128 over the tokens of train and valid
};

}  // namespace capstan
