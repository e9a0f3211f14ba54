// Functions of SIMD registers that have the same bits at every width and on every maker's CPU: fixed sequences of
// additions, products and fused products. xsimd's own differ: with AVX-512 its fma leaves to the compiler whether
// anything is fused. (What only gradient checks in double use is xsimd's.) tests/core/products/float_in_order.cpp holds
// bits and accuracy.
#pragma once

#include <cstdint>
#include <limits>
#include <xsimd/xsimd.hpp>

namespace capstan::simd {

using Floats = xsimd::batch<float>;
using Doubles = xsimd::batch<double>;

/// a b + c, rounded once; on x86-64-v2, which has no such instruction, rounded twice.
#ifdef __AVX512F__
inline Floats fma(const Floats& a, const Floats& b, const Floats& c) { return Floats(_mm512_fmadd_ps(a, b, c)); }
inline Doubles fma(const Doubles& a, const Doubles& b, const Doubles& c) { return Doubles(_mm512_fmadd_pd(a, b, c)); }
#else
inline Floats fma(const Floats& a, const Floats& b, const Floats& c) { return xsimd::fma(a, b, c); }
inline Doubles fma(const Doubles& a, const Doubles& b, const Doubles& c) { return xsimd::fma(a, b, c); }
#endif

/// c[0] x^(Size - 1) + ... + c[Size - 1]
template <class Batch, class T, size_t Size>
Batch polynomial(const T (&c)[Size], const Batch& x) {
  Batch sum(c[0]);
  for (size_t i = 1; i < Size; ++i) sum = fma(sum, x, Batch(c[i]));
  return sum;
}

constexpr float ln2_high = 0.693359375F, ln2_low = -2.12194440e-4F;

/// e^x (Cephes: a relative error of 1.2e-7); 0 below the smallest normal number, exact at infinities, NaN stays NaN.
inline Floats exp(const Floats& x) {
  using Bits = xsimd::batch<int32_t>;
  constexpr float highest = 88.72283F, lowest = -87.33654F, magic = 12582912.0F;  // 1.5 * 2^23
  constexpr float coefficients[] = {1.9875691500e-4F, 1.3981999507e-3F, 8.3334519073e-3F,
                                    4.1665795894e-2F, 1.6666665459e-1F, 5.0000001201e-1F};
  const Floats limited = xsimd::min(xsimd::max(x, Floats(lowest)), Floats(highest));
  // Adding the magic number rounds to a whole number and leaves that number in the lowest bits.
  const Floats shifted = fma(limited, Floats(1.44269504F), Floats(magic)), k = shifted - Floats(magic);
  const Floats r = fma(k, Floats(-ln2_low), fma(k, Floats(-ln2_high), limited));
  const Floats p = fma(polynomial(coefficients, r), r * r, r) + Floats(1.0F);
  const Floats y =
      xsimd::bitwise_cast<Floats>(xsimd::bitwise_cast<Bits>(p) + (xsimd::bitwise_cast<Bits>(shifted) << 23));
  const Floats above = xsimd::select(x > Floats(highest), Floats(std::numeric_limits<float>::infinity()), y);
  return xsimd::select(x >= Floats(lowest), above, xsimd::select(x == x, Floats(0.0F), x));
}

/// ln x (Cephes); -infinity at 0, NaN below.
inline Floats log(const Floats& x) {
  using Bits = xsimd::batch<int32_t>;
  constexpr int32_t one = 0x3f800000, sqrt_half = 0x3f3504f3;
  constexpr float coefficients[] = {7.0376836292e-2F,  -1.1514610310e-1F, 1.1676998740e-1F,
                                    -1.2420140846e-1F, 1.4249322787e-1F,  -1.6668057665e-1F,
                                    2.0000714765e-1F,  -2.4999993993e-1F, 3.3333331174e-1F};
  // x = 2^k m with m between sqrt(1/2) and sqrt(2).
  const Bits raised = xsimd::bitwise_cast<Bits>(x) + Bits(one - sqrt_half);
  const Floats k = xsimd::to_float((raised >> 23) - Bits(127));
  const Floats f = xsimd::bitwise_cast<Floats>((raised & Bits(0x007fffff)) + Bits(sqrt_half)) - Floats(1.0F), z = f * f;
  Floats y = fma(polynomial(coefficients, f), f * z, k * Floats(ln2_low));
  y = f + fma(Floats(-0.5F), z, y);
  y = fma(k, Floats(ln2_high), y);
  const Floats infinity(std::numeric_limits<float>::infinity()), zero(0.0F);
  const Floats negative = xsimd::select(x < zero, Floats(std::numeric_limits<float>::quiet_NaN()), x);
  return xsimd::select(x > zero && x < infinity, y, xsimd::select(x == zero, -infinity, negative));
}

/// ln(1 + x) for 0 <= x, to the last digits of small x.
inline Floats log1p(const Floats& x) {
  const Floats one(1.0F), y = one + x, rest = x - (y - one);
  return log(y) + xsimd::select(y < Floats(std::numeric_limits<float>::infinity()), rest / y, Floats(0.0F));
}

/// tanh x (Cephes): an odd polynomial below 0.625, (1 - 2 / (e^2x + 1)) beyond.
inline Floats tanh(const Floats& x) {
  constexpr float coefficients[] = {-5.70498872745e-3F, 2.06390887954e-2F, -5.37397155531e-2F, 1.33314422036e-1F,
                                    -3.33332819422e-1F};
  const Floats size = xsimd::abs(x), z = x * x, one(1.0F);
  const Floats small = fma(polynomial(coefficients, z), z * x, x);
  const Floats large = one - Floats(2.0F) / (exp(size + size) + one);
  return xsimd::select(size < Floats(0.625F), small, xsimd::select(x < Floats(0.0F), -large, large));
}

/// ln x for normal x > 0, to the last digits of a double: 2 artanh(f / (2 + f)) of what is left of x beside its power
/// of two.
inline Doubles log_of_normal(const Doubles& x) {
  using Bits = xsimd::batch<uint64_t>;
  constexpr uint64_t one = 0x3ff0000000000000, sqrt_half = 0x3fe6a09e667f3bcd;
  constexpr double coefficients[] = {2.0 / 23, 2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15, 2.0 / 13,
                                     2.0 / 11, 2.0 / 9,  2.0 / 7,  2.0 / 5,  2.0 / 3};
  const Bits raised = xsimd::bitwise_cast<Bits>(x) + Bits(one - sqrt_half);
  // The exponent, in the lowest bits of 2^52.
  const Doubles k =
      xsimd::bitwise_cast<Doubles>((raised >> 52) | Bits(0x4330000000000000)) - Doubles(4503599627370496.0 + 1023);
  const Doubles f = xsimd::bitwise_cast<Doubles>((raised & Bits(0x000fffffffffffff)) + Bits(sqrt_half)) - Doubles(1.0);
  const Doubles s = f / (Doubles(2.0) + f), z = s * s, half_square = Doubles(0.5) * f * f;
  const Doubles rest = fma(s, half_square + z * polynomial(coefficients, z), k * Doubles(1.90821492927058770002e-10));
  return fma(k, Doubles(6.93147180369123816490e-01), f - (half_square - rest));
}

inline Doubles exp(const Doubles& x) { return xsimd::exp(x); }
inline Doubles log(const Doubles& x) { return xsimd::log(x); }
inline Doubles log1p(const Doubles& x) { return xsimd::log1p(x); }
inline Doubles tanh(const Doubles& x) { return xsimd::tanh(x); }

}  // namespace capstan::simd
