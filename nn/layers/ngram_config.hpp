// Options of n-grams, and the hash of those of tokens, for NgramEmbedding and NgramFeatures
// (nn/layers/ngram_embedding.hpp), which look n-grams up in a table. Trained tables depend on the hash, so it cannot
// change: tests/nn/layers/test_ngrams.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "core/config/schema.hpp"

namespace capstan {

struct NgramTableConfig {
  std::vector<int64_t> orders = {};  // none: no n-grams
  int64_t buckets = 200000;
  int64_t width = 64;
  double scale = 10;  // a key of NgramConfig alone
  double dropout = 0;
};

template <class Fields>
void describe(Fields& f, NgramTableConfig& c) {
  f("orders", c.orders, any(), "lengths of the n-grams: [1, 2] for words, [2, 3, 4, 5, 6] for bytes; [] = none");
  f("buckets", c.buckets, between(0, 2147483647),
    "rows in the table, to one of which each n-gram is hashed; of a language model, 0 = chosen by the plan for "
    "train.minutes");
  f("width", c.width, between(1, 65536), "number of elements per row");
  f("dropout", c.dropout, between_below(0, 1), "share of the n-grams that are left out in training");
}

void validate(const NgramTableConfig& config, Problems& problems);

/// Mixes bits: every bit of the result depends on every bit of h (SplitMix64's finaliser, Steele et al. 2014).
inline uint64_t mixed_bits(uint64_t h) {
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
  return h ^ (h >> 31);
}

/// The bucket, in [0, buckets), of the n-gram tokens[0 .. order): a hash of the tokens and `order` that never changes.
int32_t ngram_bucket(const int32_t* tokens, int64_t order, int64_t buckets);

/// Configures NgramFeatures.
struct NgramConfig : NgramTableConfig {
  bool any() const { return !orders.empty(); }
};

template <class Fields>
void describe(Fields& f, NgramConfig& c) {
  describe(f, static_cast<NgramTableConfig&>(c));
  f("scale", c.scale, greater(0),
    "factor of the sum of the rows, divided by the square root of their number: the larger, the faster the table "
    "learns");
}

/// Configures NgramEmbedding.
struct NgramEmbeddingConfig : NgramTableConfig {
  bool every_block = false;
  bool fresh_each_epoch = false;
};

template <class Fields>
void describe(Fields& f, NgramEmbeddingConfig& c) {
  describe(f, static_cast<NgramTableConfig&>(c));
  f("every_block", c.every_block, any(),
    "also add them to the input of every block, each feature times a learned number of the block, at first 0");
  f("fresh_each_epoch", c.fresh_each_epoch, any(),
    "empty the table at the end of every epoch: what was memorised in one has no effect in the next");
}

}  // namespace capstan
