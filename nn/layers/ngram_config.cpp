// Rules for the options of n-grams of tokens, and their hash. Trained tables depend on the hash, so it cannot change:
// tests/nn/layers/test_ngrams.cpp.
#include "nn/layers/ngram_config.hpp"

#include <algorithm>

#include "core/base/error.hpp"

namespace capstan {

namespace {

void check_lengths(const char* key, const char* unit, const std::vector<int64_t>& lengths, Problems& problems) {
  for (size_t i = 0; i < lengths.size(); ++i) {
    const int64_t length = lengths[i];
    if (length < 1 || length > 16)
      problems.add(fmt::format("{}.{}", key, i), fmt::format("an n-gram has from 1 to 16 {}, not {}", unit, length));
    if (std::count(lengths.begin(), lengths.end(), length) > 1)
      problems.add(fmt::format("{}.{}", key, i), fmt::format("{} is listed twice", length));
  }
}

}  // namespace

void validate(const NgramTableConfig& config, Problems& problems) {
  check_lengths("orders", "tokens", config.orders, problems);
}

void validate(const NgramConfig& config, Problems& problems) {
  validate(static_cast<const NgramTableConfig&>(config), problems);
  check_lengths("characters", "characters", config.characters, problems);
  if (config.unicode && config.characters.empty())
    problems.add("unicode", "is for n-grams of characters: give their lengths (characters)");
}

int32_t ngram_bucket(const int32_t* tokens, int64_t order, int64_t buckets) {
  uint64_t h = mixed_bits(static_cast<uint64_t>(order));
  for (int64_t i = 0; i < order; ++i)
    h = mixed_bits(h + 0x9e3779b97f4a7c15u * (static_cast<uint64_t>(static_cast<uint32_t>(tokens[i])) + 1));
  return bucket_of_hash(h, buckets);
}

}  // namespace capstan
