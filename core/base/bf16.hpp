// Bf16 is for the factors of matrix products (core/products) and for stored weights: the upper half of a float, so its
// range with 8 bits of significand. tests/core/products/float_bf16.cpp holds the rounding.
#pragma once

#include <cstdint>
#include <cstring>

namespace capstan {

/// A bf16 number: the upper half of a float.
struct Bf16 {
  uint16_t bits;
};

/// The bf16 number nearest to x, the one with an even last bit where two are equally near. An x beyond the largest bf16
/// number becomes infinite, and NaN stays NaN.
inline Bf16 to_bf16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  const uint32_t nearest = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  const uint32_t quiet_nan = bits >> 16 | 0x40;
  return {static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? quiet_nan : nearest)};
}

inline float to_float(Bf16 x) {
  const uint32_t bits = static_cast<uint32_t>(x.bits) << 16;
  float result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

}  // namespace capstan
