// Philox 4x32-10 (Salmon et al. 2011) on many counters side by side; core/base/random has it for one.

#include "core/kernels/random.hpp"
#include <algorithm>

#include "core/kernels/simd_functions.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {
namespace {

constexpr int64_t philox_counters = 64;

/// Counters, and after philox_rounds the random words in their places: word[w][j] of counter j.
struct PhiloxBlock {
  uint32_t word[4][philox_counters];
};

/// The ten rounds, side by side so that they become vector instructions.
void philox_rounds(PhiloxBlock& block, uint32_t key0, uint32_t key1) {
  uint32_t *const c0 = block.word[0], *const c1 = block.word[1], *const c2 = block.word[2], *const c3 = block.word[3];
  for (int round = 0; round < 10; ++round) {
#pragma omp simd
    for (int64_t j = 0; j < philox_counters; ++j) {
      const uint64_t p0 = uint64_t{0xD2511F53} * c0[j], p1 = uint64_t{0xCD9E8D57} * c2[j];
      c0[j] = static_cast<uint32_t>(p1 >> 32) ^ c1[j] ^ key0;
      c1[j] = static_cast<uint32_t>(p1);
      c2[j] = static_cast<uint32_t>(p0 >> 32) ^ c3[j] ^ key1;
      c3[j] = static_cast<uint32_t>(p0);
    }
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
}

constexpr int64_t block_words = 4 * philox_counters;

/// words[4 j + w] = word w of Philox at counter j of `block`.
void random_words(uint32_t* words, PhiloxBlock& block, const uint32_t (&key)[2]) {
  philox_rounds(block, key[0], key[1]);
  const auto& [c0, c1, c2, c3] = block.word;
  for (int64_t j = 0; j < philox_counters; ++j)
    words[4 * j] = c0[j], words[4 * j + 1] = c1[j], words[4 * j + 2] = c2[j], words[4 * j + 3] = c3[j];
}

/// words[4 j + w] = word w at the counter (example, position, first + j, step).
void row_words(uint32_t* words, const DropoutRow& row, uint32_t first) {
  PhiloxBlock block;
  auto& [c0, c1, c2, c3] = block.word;
  for (uint32_t j = 0; j < philox_counters; ++j)
    c0[j] = row.example, c1[j] = row.position, c2[j] = first + j, c3[j] = row.step;
  random_words(words, block, row.key);
}

void mask(real* out, const real* in, const uint32_t* words, int64_t count, uint32_t threshold, real scale) {
  for (int64_t i = 0; i < count; ++i) out[i] = words[i] >= threshold ? scale * in[i] : 0;
}

using capstan::simd::Doubles;
constexpr double two_pi = 6.28318530717958647692528676655900577;

/// [0, 1) in 53 bits from two words, as RandomStream::uniform. By way of 32-bit integers, which every level converts in
/// registers; the shifts leave their sign alone.
void uniform(double* out, const uint32_t* high, const uint32_t* low) {
#pragma omp simd
  for (int64_t j = 0; j < philox_counters; ++j)
    out[j] = 0x1p-27 * static_cast<int32_t>(high[j] >> 5) + 0x1p-53 * static_cast<int32_t>(low[j] >> 6);
}

/// cos(2 pi v) for v in [0, 1). The nearest quarter of a turn is taken off exactly, which leaves |x| <= pi / 4, where
/// Taylor's series are exact in double with nine terms. (xsimd's cos brings a scalar
/// reduction of huge arguments along.)
Doubles cosine_of_turns(const Doubles& v) {
  constexpr double cosine_terms[] = {1.0 / 20922789888000,
                                     -1.0 / 87178291200,
                                     1.0 / 479001600,
                                     -1.0 / 3628800,
                                     1.0 / 40320,
                                     -1.0 / 720,
                                     1.0 / 24,
                                     -1.0 / 2,
                                     1.0};
  constexpr double sine_terms[] = {1.0 / 355687428096000,
                                   -1.0 / 1307674368000,
                                   1.0 / 6227020800,
                                   -1.0 / 39916800,
                                   1.0 / 362880,
                                   -1.0 / 5040,
                                   1.0 / 120,
                                   -1.0 / 6,
                                   1.0};
  const Doubles quarter = xsimd::floor(capstan::simd::fma(v, Doubles(4.0), Doubles(0.5)));
  const Doubles x = Doubles(two_pi) * (v - Doubles(0.25) * quarter), s = x * x;
  const auto first = quarter == Doubles(1.0), second = quarter == Doubles(2.0), third = quarter == Doubles(3.0);
  const Doubles size = xsimd::select(first || third, x * capstan::simd::polynomial(sine_terms, s),
                                     capstan::simd::polynomial(cosine_terms, s));
  return xsimd::select(first || second, -size, size);
}

/// Box and Muller 1958, in double so that a float is the rounded exact number nearly always.
void box_muller(double* out, const double* u, const double* v) {
  for (int64_t j = 0; j < philox_counters; j += static_cast<int64_t>(Doubles::size)) {
    const Doubles distance = Doubles(1.0) - Doubles::load_aligned(u + j);  // exact: u is a multiple of 2^-53
    const Doubles radius = xsimd::sqrt(Doubles(-2.0) * simd::log(distance));
    (radius * cosine_of_turns(Doubles::load_aligned(v + j))).store_aligned(out + j);
  }
}

}  // namespace

void dropout_row(real* out, const real* in, int64_t count, const DropoutRow& row, uint32_t threshold, real scale) {
  uint32_t words[block_words];
  for (int64_t first = 0; first < count; first += block_words) {
    row_words(words, row, static_cast<uint32_t>(first / 4));
    mask(out + first, in + first, words, std::min(block_words, count - first), threshold, scale);
  }
}

void normal_numbers(real* out, int64_t count, uint64_t key, uint64_t first, double stddev) {
  PhiloxBlock block;
  alignas(64) double u[philox_counters], v[philox_counters];
  for (int64_t done = 0; done < count; done += philox_counters) {
    for (int64_t j = 0; j < philox_counters; ++j) {
      const uint64_t counter = first + static_cast<uint64_t>(done + j);
      block.word[0][j] = static_cast<uint32_t>(counter);
      block.word[1][j] = static_cast<uint32_t>(counter >> 32);
      block.word[2][j] = block.word[3][j] = 0;
    }
    philox_rounds(block, static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32));
    uniform(u, block.word[0], block.word[1]);
    uniform(v, block.word[2], block.word[3]);
    box_muller(u, u, v);
    const int64_t width = std::min(philox_counters, count - done);
    for (int64_t j = 0; j < width; ++j) out[done + j] = static_cast<real>(stddev * u[j]);
  }
}

}  // namespace capstan::CAPSTAN_PRECISION::kernels
