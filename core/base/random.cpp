// Philox of random.hpp, by the library Random123, and what is drawn from its words. No draw may change, since runs save
// only the seed: tests/core/base/test_random.cpp.
#include "core/base/random.hpp"

#include <Random123/philox.h>
#include <xxhash.h>

#include <cmath>

#include "core/base/error.hpp"
#include "core/base/math.hpp"

namespace capstan {

uint64_t hash_path(std::string_view path) { return XXH3_64bits(path.data(), path.size()); }

uint64_t philox_key(const RandomKey& key) {
  // Philox 4x32 takes a 64-bit key: a bijective multiply-xorshift of the seed, plus the stream.
  const uint64_t mixed = (key.seed + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
  return (mixed ^ (mixed >> 31)) + key.stream;
}

RandomWords random_words(const RandomKey& key, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3) {
  const uint64_t mixed = philox_key(key);
  const r123::Philox4x32::key_type halves = {{static_cast<uint32_t>(mixed), static_cast<uint32_t>(mixed >> 32)}};
  const r123::Philox4x32::ctr_type counter = {{c0, c1, c2, c3}};
  const auto words = r123::Philox4x32()(counter, halves);
  return {words[0], words[1], words[2], words[3]};
}

uint32_t RandomStream::word() {
  if (left_ == 0) {
    words_ = random_words(key_, static_cast<uint32_t>(block_), static_cast<uint32_t>(block_ >> 32), 0, 0);
    ++block_;
    left_ = 4;
  }
  return words_[static_cast<size_t>(4 - left_--)];
}

double RandomStream::uniform() {
  const uint64_t high = word() >> 5, low = word() >> 6;
  return static_cast<double>((high << 26) | low) * 0x1p-53;
}

uint64_t RandomStream::below(uint64_t bound) {
  check(bound > 0, "random: below(0)");
  const uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
  for (;;) {
    const uint64_t draw = (static_cast<uint64_t>(word()) << 32) | word();
    if (draw < limit) return draw % bound;
  }
}

double RandomStream::normal() {
  const double radius = std::sqrt(-2 * math::log1p(-uniform()));
  return radius * math::cos(2 * M_PI * uniform());
}

uint64_t permuted(uint64_t index, uint64_t count, const RandomKey& key, uint64_t epoch) {
  check(index < count, "random: index {} is outside a permutation of {}", index, count);
  int half_bits = 1;
  while (half_bits < 31 && (uint64_t{1} << (2 * half_bits)) < count) ++half_bits;
  const uint64_t mask = (uint64_t{1} << half_bits) - 1;
  uint64_t value = index;
  do {
    uint64_t left = value >> half_bits, right = value & mask;
    for (uint32_t round = 0; round < 4; ++round) {
      const RandomWords words = random_words(key, static_cast<uint32_t>(right), round, static_cast<uint32_t>(epoch),
                                             static_cast<uint32_t>(epoch >> 32));
      const uint64_t next = left ^ (words[0] & mask);
      left = right;
      right = next;
    }
    value = (left << half_bits) | right;
  } while (value >= count);  // cycle walking: the domain is at most four times the range
  return value;
}

}  // namespace capstan
