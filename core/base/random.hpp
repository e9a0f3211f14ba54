// Counter-based random numbers: a draw is a pure function of a key and a counter (Philox 4x32-10, Salmon et al. 2011,
// from Random123), so it does not depend on threads, padding, micro-batches, recomputation or a resume. Runs store a
// seed and no generator: a change of what is drawn changes every run that is continued or repeated.
// tests/core/base/test_random.cpp holds the published words of Philox; core/kernels/random.cpp has it for many
// counters.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace capstan {

/// key = (seed of the run, hash of what the draws are for: a module path, "shuffle", ...).
struct RandomKey {
  uint64_t seed = 0;
  uint64_t stream = 0;
};

/// Stable 64-bit hash of a path (XXH3).
uint64_t hash_path(std::string_view path);
inline RandomKey random_key(uint64_t seed, std::string_view path) { return {seed, hash_path(path)}; }

/// Four independent 32-bit words for one counter.
using RandomWords = std::array<uint32_t, 4>;
RandomWords random_words(const RandomKey& key, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3);

/// The two key words of Philox, low half first, that random_words uses: for kernels that run many counters at once.
uint64_t philox_key(const RandomKey& key);

/// A stream of draws: counter (index, 0, 0, 0), (index + 1, ...), ... for initialisation, sampling, generators.
class RandomStream {
 public:
  explicit RandomStream(const RandomKey& key, uint64_t start = 0) : key_(key), block_(start) {}

  uint32_t word();
  /// Uniform in [0, 1), 53 bits.
  double uniform();
  /// Uniform in {0, ..., bound - 1} without bias. Throws std::invalid_argument for bound 0.
  uint64_t below(uint64_t bound);
  /// Standard normal (Box-Muller). Takes four words: all of one counter, where only normal() was called before.
  double normal();
  const RandomKey& key() const { return key_; }
  /// The counter that the next draw begins with.
  uint64_t counter() const { return block_; }
  /// A stream that begins `counters` counters after counter().
  RandomStream skip(uint64_t counters) const { return RandomStream(key_, block_ + counters); }

 private:
  RandomKey key_;
  uint64_t block_;
  RandomWords words_{};
  int left_ = 0;
};

/// A permutation of [0, count) in O(1) memory per look-up: where index `index` of epoch `epoch` goes. A pure function
/// of its arguments (a Feistel network over Philox, walked until it falls inside the range). Throws
/// std::invalid_argument for an index outside of it.
uint64_t permuted(uint64_t index, uint64_t count, const RandomKey& key, uint64_t epoch);
/// permuted() for signed numbers, which must not be negative.
inline int64_t permuted_place(int64_t index, int64_t count, const RandomKey& key, int64_t epoch) {
  return static_cast<int64_t>(
      permuted(static_cast<uint64_t>(index), static_cast<uint64_t>(count), key, static_cast<uint64_t>(epoch)));
}

}  // namespace capstan
