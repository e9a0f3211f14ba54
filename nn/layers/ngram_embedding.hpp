// Hashed n-grams as part of a token's embedding (models/stack): the last few tokens together are looked up in a table.
// tests/nn/layers/test_ngram_embedding.cpp checks that decoding and forward() agree, and what dropout depends on.
// After the hash n-gram embeddings of Pagnoni et al. 2024 (Byte Latent Transformer, arXiv 2412.09871, section 3.2.1).
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "core/fused/fused.hpp"
#include "nn/layers/layers.hpp"
#include "nn/layers/ngram_config.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// e(t) = W q(t),  q(t) = scale / sqrt(number of orders) * sum over orders n of table[bucket of tokens t - n + 1 ...
/// t]. An n-gram that would begin before the document is left out, so that e(t) depends on no token after t and on no
/// other document. Unlike the paper, the orders share one table, whose rows may be narrower than the model. Parameters
/// table (buckets, width), which starts at zero and is updated by rows, and output.weight (D, width).
class NgramEmbedding {
 public:
  NgramEmbedding(const Scope& scope, const NgramEmbeddingConfig& config, int64_t model_width);

  /// tokens: (B, T) -> (B, T, D); 0 at padding.
  Var operator()(const Ids& tokens, const Context& context) const;
  /// How many tokens decoding has to remember, because the next token's n-grams reach back to them.
  int64_t memory() const { return longest_ - 1; }
  /// The embeddings of the next T tokens of B sequences, (B, T) -> (B, T, D). recent: for each sequence the tokens in
  /// front of these, the newest last: all of them, or at least the last memory(). `decode`: multiply by packed weights,
  /// as a decode step does; null: multiply as forward() does.
  Var next(const Ids& tokens, const std::vector<std::vector<int32_t>>& recent, DecodeContext* decode) const;

 private:
  /// Adds to `bags` the n-grams of the `available` tokens in front of `end` that end with the last of these tokens.
  void add_ending(Bags& bags, const int32_t* end, int64_t available) const;
  Var embedded(Bags bags, const std::vector<int64_t>& shape, DecodeContext* decode = nullptr) const;

  NgramEmbeddingConfig config_;
  int64_t longest_;
  RandomKey key_;  // of dropout
  Var table_;
  Linear output_;
};

// Hashed n-grams as features of a text (models/text_classifier): a bag of n-grams, whose output is added to the logits
// of a model that reads the tokens in order. After fastText (Joulin et al. 2017, arXiv 1607.01759).
// tests/nn/layers/test_ngrams.cpp.

/// y = O q,  q = scale / sqrt(n) * sum of table[bucket] over the n n-grams of a row's documents; n-grams do not reach
/// across a document's boundary or into padding. With n-grams of characters, q has a second such sum, times 1/4, over
/// the m n-grams of the row's text (character_hashes), divided by sqrt(m). tokens: (B, T) -> (B, outputs). y = 0 for a
/// row without n-grams, and for one whose n-grams never occurred in training, since the table starts at zero.
/// Parameters table (buckets, width), updated by rows, and output.weight (outputs, width).
class NgramFeatures {
 public:
  NgramFeatures(const Scope& scope, const NgramConfig& config, int64_t outputs);
  /// With n-grams of characters, context.texts must have the rows' texts.
  Var operator()(const Ids& tokens, const Context& context) const;

 private:
  /// For each row the bag of its n-grams of tokens, then that of its n-grams of characters: those that are configured.
  Bags bags(const Ids& tokens, const Context& context) const;
  /// Adds the n-grams of one document to the bag; returns their number, n-grams that dropout left out included.
  int64_t add_document(Bags& bags, const int32_t* tokens, int64_t length, int32_t example,
                       const Context& context) const;
  /// The same of a text's n-grams of characters.
  int64_t add_characters(Bags& bags, std::string_view text, int32_t example, const Context& context) const;

  NgramConfig config_;
  RandomKey key_;  // of dropout
  Var table_;
  Linear output_;
};

}  // namespace capstan::CAPSTAN_PRECISION
