// Rules for the options of n-grams of tokens, and their hash. Trained tables depend on the hash, so it cannot change:
// tests/nn/layers/test_ngrams.cpp.
#include "nn/layers/ngram_config.hpp"

#include <algorithm>

#include "core/base/error.hpp"

namespace capstan {

void validate(const NgramTableConfig& config, Problems& problems) {
  for (size_t i = 0; i < config.orders.size(); ++i) {
    const int64_t order = config.orders[i];
    if (order < 1 || order > 16)
      problems.add(fmt::format("orders.{}", i), fmt::format("an n-gram has from 1 to 16 tokens, not {}", order));
    if (std::count(config.orders.begin(), config.orders.end(), order) > 1)
      problems.add(fmt::format("orders.{}", i), fmt::format("{} is listed twice", order));
  }
}

int32_t ngram_bucket(const int32_t* tokens, int64_t order, int64_t buckets) {
  uint64_t h = mixed_bits(static_cast<uint64_t>(order));
  for (int64_t i = 0; i < order; ++i)
    h = mixed_bits(h + 0x9e3779b97f4a7c15u * (static_cast<uint64_t>(static_cast<uint32_t>(tokens[i])) + 1));
  // floor(h * buckets / 2^64): spreads hashes evenly over any number of buckets, without a division.
  return static_cast<int32_t>((static_cast<unsigned __int128>(h) * static_cast<uint64_t>(buckets)) >> 64);
}

}  // namespace capstan
