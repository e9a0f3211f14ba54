#include "core/kernels/normal.hpp"

#include <algorithm>
#include <xsimd/xsimd.hpp>

#include "core/kernels/philox.hpp"

CAPSTAN_BEGIN
namespace kernels {
namespace {

using Doubles = xsimd::batch<double>;
constexpr double two_pi = 6.28318530717958647692528676655900577;

/// [0, 1) in 53 bits from two words, as RandomStream::uniform. By way of 32-bit integers, which every level converts in
/// registers; the shifts leave their sign alone.
void uniform(double* out, const uint32_t* high, const uint32_t* low) {
#pragma omp simd
  for (int64_t j = 0; j < philox_counters; ++j)
    out[j] = 0x1p-27 * static_cast<int32_t>(high[j] >> 5) + 0x1p-53 * static_cast<int32_t>(low[j] >> 6);
}

/// Box and Muller 1958, in double so that a float is the rounded exact number nearly always.
void box_muller(double* out, const double* u, const double* v) {
  for (int64_t j = 0; j < philox_counters; j += static_cast<int64_t>(Doubles::size)) {
    const Doubles distance = Doubles(1.0) - Doubles::load_aligned(u + j);  // exact: u is a multiple of 2^-53
    const Doubles radius = xsimd::sqrt(Doubles(-2.0) * xsimd::log(distance));
    (radius * xsimd::cos(Doubles(two_pi) * Doubles::load_aligned(v + j))).store_aligned(out + j);
  }
}

}  // namespace

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

}  // namespace kernels
CAPSTAN_END
