// 8-bit floats for weights that are stored small (core/io/file_tensor.cpp, capstan slim): E4M3 of the Open Compute
// Project, with 4 bits of significand. tests/core/base/test_f8.cpp holds the rounding.
#pragma once

#include <cmath>
#include <cstdint>

namespace capstan {

struct F8 {
  uint8_t bits;  // sign, exponent (4), mantissa (3)
};

/// The largest finite value; the format has no infinity.
constexpr float largest_f8 = 448;

inline float to_float(F8 x) {
  const int exponent = x.bits >> 3 & 15, mantissa = x.bits & 7;
  if (exponent == 15 && mantissa == 7) return std::nanf("");
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                        : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return (x.bits & 0x80) != 0 ? -magnitude : magnitude;
}

/// The F8 number nearest to x, the one with an even last bit where two are equally near; largest_f8 for a larger x,
/// with its sign. NaN stays NaN.
inline F8 to_f8(float x) {
  const int sign = std::signbit(x) ? 0x80 : 0;
  if (std::isnan(x)) return {static_cast<uint8_t>(sign | 0x7f)};
  const float magnitude = std::fmin(std::fabs(x), largest_f8);
  const int exponent = magnitude < 0x1p-6f ? -6 : std::ilogb(magnitude);
  const int steps = static_cast<int>(std::nearbyint(std::ldexp(magnitude, 3 - exponent)));  // in units of the last bit
  // Fewer than 8 steps make a subnormal number; 16 are the first number of the next exponent, into which they carry.
  return {static_cast<uint8_t>(sign | (((exponent + 6) << 3) + steps))};
}

}  // namespace capstan
