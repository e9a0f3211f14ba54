// Hashed word n-grams as features of a text: what a bag of them says about its label. After fastText (Joulin et al.
// 2017, arXiv 1607.01759), beside a model that reads the tokens in order.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/ops_bag.hpp"
#include "core/schema.hpp"
#include "nn/layers.hpp"

namespace capstan {

struct NgramConfig {
  std::vector<int64_t> orders = {};  // none: no features
  int64_t buckets = 200000;
  int64_t width = 64;
  double scale = 10;
  double dropout = 0;
};

template <class Fields>
void describe(Fields& f, NgramConfig& c) {
  f("orders", c.orders, any(),
    "lengths of the n-grams whose embeddings go, summed over the text, to the logits on a way of their own: [1, 2] for "
    "tokens and pairs; [] = none");
  f("buckets", c.buckets, between(1, 2147483647), "rows of their table; n-grams are hashed to them");
  f("width", c.width, between(1, 65536), "numbers per row");
  f("scale", c.scale, greater(0),
    "factor of the sum (which is divided by the root of its length): how fast the table learns beside the rest");
  f("dropout", c.dropout, between_below(0, 1), "share of the n-grams of a text left out while training");
}

void validate(const NgramConfig& config, Problems& problems);

/// The bucket of an n-gram: a stable hash of its tokens and their number.
int32_t ngram_bucket(const int32_t* tokens, int64_t order, int64_t buckets);

}  // namespace capstan

CAPSTAN_BEGIN

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

CAPSTAN_END
