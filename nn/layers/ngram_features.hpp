// Hashed n-grams as features of a text (models/text_classifier): a bag of n-grams, whose output is added to the logits
// of a model that reads the tokens in order. After fastText (Joulin et al. 2017, arXiv 1607.01759).
// tests/nn/layers/test_ngrams.cpp.
#pragma once

#include <cstdint>

#include "core/fused/bag.hpp"
#include "nn/layers/layers.hpp"
#include "nn/layers/ngram_config.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// y = O q,  q = scale / sqrt(n) * sum of table[bucket] over the n n-grams of a row's documents; n-grams do not reach
/// across a document's boundary or into padding. tokens: (B, T) -> (B, outputs). y = 0 for a
/// row without n-grams, and for one whose n-grams never occurred in training, since the table starts at zero.
/// Parameters table (buckets, width), updated by rows, and output.weight (outputs, width).
class NgramFeatures {
 public:
  NgramFeatures(const Scope& scope, const NgramConfig& config, int64_t outputs);
  Var operator()(const Ids& tokens, const Context& context) const;

 private:
  /// For each row the bag of its n-grams.
  Bags bags(const Ids& tokens, const Context& context) const;
  /// Adds the n-grams of one document to the bag; returns their number, n-grams that dropout left out included.
  int64_t add_document(Bags& bags, const int32_t* tokens, int64_t length, int32_t example,
                       const Context& context) const;

  NgramConfig config_;
  RandomKey key_;  // of dropout
  Var table_;
  Linear output_;
};

}  // namespace capstan::CAPSTAN_PRECISION
