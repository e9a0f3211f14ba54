#include "core/kernels/normal.hpp"

#include <algorithm>
#include <xsimd/xsimd.hpp>

#include "core/kernels/philox.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {
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

/// c[0] + c[1] s + c[2] s^2 + ...
template <size_t Size>
Doubles polynomial(const double (&c)[Size], const Doubles& s) {
  Doubles sum(c[Size - 1]);
  for (size_t i = Size - 1; i-- > 0;) sum = xsimd::fma(sum, s, Doubles(c[i]));
  return sum;
}

/// cos(2 pi v) for v in [0, 1). The nearest quarter of a turn is taken off exactly, which leaves |x| <= pi / 4, where
/// Taylor's series are exact in double with nine terms. (xsimd's cos brings a scalar
/// reduction of huge arguments along.)
Doubles cosine_of_turns(const Doubles& v) {
  constexpr double cosine_terms[] = {1.0,
                                     -1.0 / 2,
                                     1.0 / 24,
                                     -1.0 / 720,
                                     1.0 / 40320,
                                     -1.0 / 3628800,
                                     1.0 / 479001600,
                                     -1.0 / 87178291200,
                                     1.0 / 20922789888000};
  constexpr double sine_terms[] = {1.0,
                                   -1.0 / 6,
                                   1.0 / 120,
                                   -1.0 / 5040,
                                   1.0 / 362880,
                                   -1.0 / 39916800,
                                   1.0 / 6227020800,
                                   -1.0 / 1307674368000,
                                   1.0 / 355687428096000};
  const Doubles quarter = xsimd::floor(xsimd::fma(v, Doubles(4.0), Doubles(0.5)));
  const Doubles x = Doubles(two_pi) * (v - Doubles(0.25) * quarter), s = x * x;
  const auto first = quarter == Doubles(1.0), second = quarter == Doubles(2.0), third = quarter == Doubles(3.0);
  const Doubles size = xsimd::select(first || third, x * polynomial(sine_terms, s), polynomial(cosine_terms, s));
  return xsimd::select(first || second, -size, size);
}

/// Box and Muller 1958, in double so that a float is the rounded exact number nearly always.
void box_muller(double* out, const double* u, const double* v) {
  for (int64_t j = 0; j < philox_counters; j += static_cast<int64_t>(Doubles::size)) {
    const Doubles distance = Doubles(1.0) - Doubles::load_aligned(u + j);  // exact: u is a multiple of 2^-53
    const Doubles radius = xsimd::sqrt(Doubles(-2.0) * xsimd::log(distance));
    (radius * cosine_of_turns(Doubles::load_aligned(v + j))).store_aligned(out + j);
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

}  // namespace capstan::CAPSTAN_PRECISION::kernels
