// Hashed n-grams as part of a token's embedding (models/stack): the last few tokens together are looked up in a table.
// tests/nn/layers/test_ngram_embedding.cpp checks that decoding and forward() agree, and what dropout depends on.
// After the hash n-gram embeddings of Pagnoni et al. 2024 (Byte Latent Transformer, arXiv 2412.09871, section 3.2.1).
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "core/fused/bag.hpp"
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

}  // namespace capstan::CAPSTAN_PRECISION
