// 16-bit floats for the factors of matrix products: the upper half of a float,
// so its range with 8 bits of significand.
#pragma once

#include <cstdint>
#include <cstring>

namespace capstan {

struct Bf16 {
  uint16_t bits;
};

/// The float nearest to x among those of 16 bits, the one with an even last bit where two are equally near; what is
/// beyond the largest becomes infinite, and NaN stays NaN.
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
