// Hashed word n-grams as features of a text: what a bag of them says about its label. After fastText (Joulin et al.
// 2017, arXiv 1607.01759), beside a model that reads the tokens in order.
#pragma once

#include <cstdint>
#include <memory>

#include "core/ops/bag.hpp"
#include "nn/layers/layers.hpp"
#include "nn/layers/ngram_config.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// y = O q,  q = scale / sqrt(n) * sum of table[bucket] over the n n-grams of a row's documents; n-grams do not reach
/// across a document's border or into padding. tokens: (B, T) -> (B, outputs). A row without n-grams has y = 0, and so
/// has one whose n-grams were never seen in training: the table starts at zero. Parameters table (buckets, width),
/// updated by rows, and output.weight (outputs, width).
class NgramFeatures {
 public:
  NgramFeatures(const Scope& scope, const NgramConfig& config, int64_t outputs);
  Var operator()(const Ids& tokens, const Context& context) const;

 private:
  Bags bags(const Ids& tokens, const Context& context) const;
  /// Adds the n-grams of one document to the bag; returns their number, those that were left out included.
  int64_t add_document(Bags& bags, const int32_t* tokens, int64_t length, int32_t example,
                       const Context& context) const;

  NgramConfig config_;
  RandomKey key_;  // of dropout
  Var table_;
  std::shared_ptr<TouchedRows> touched_;
  Linear output_;
};

}  // namespace capstan::CAPSTAN_PRECISION
