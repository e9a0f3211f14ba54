// One source for SIMD bodies and scalar tails: a kernel is a template on V, which is xsimd's batch of `real` or `real` itself.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <xsimd/xsimd.hpp>

#include "core/real.hpp"

CAPSTAN_BEGIN
namespace kernels {

using Lanes = xsimd::batch<real>;

template <class V>
constexpr int64_t lane_count = std::is_same_v<V, real> ? 1 : static_cast<int64_t>(Lanes::size);

template <class V>
inline V load(const real* p) {
  if constexpr (std::is_same_v<V, real>) {
    return *p;
  } else {
    return V::load_unaligned(p);
  }
}
inline void store(real* p, real value) { *p = value; }
inline void store(real* p, const Lanes& value) { value.store_unaligned(p); }

inline real lane_exp(real x) { return std::exp(x); }
inline Lanes lane_exp(const Lanes& x) { return xsimd::exp(x); }
inline real lane_log(real x) { return std::log(x); }
inline Lanes lane_log(const Lanes& x) { return xsimd::log(x); }
inline real lane_abs(real x) { return std::abs(x); }
inline Lanes lane_abs(const Lanes& x) { return xsimd::abs(x); }
inline real lane_max(real a, real b) { return std::max(a, b); }
inline Lanes lane_max(const Lanes& a, const Lanes& b) { return xsimd::max(a, b); }
inline real lane_select(bool condition, real a, real b) { return condition ? a : b; }
inline Lanes lane_select(const Lanes::batch_bool_type& condition, const Lanes& a, const Lanes& b) {
  return xsimd::select(condition, a, b);
}

/// 1 / (1 + e^-x); exact limits at both ends because e^-x saturates to 0 and infinity.
template <class V>
inline V lane_sigmoid(const V& x) {
  return V(1) / (V(1) + lane_exp(-x));
}

template <class V, int U>
struct LaneGroup {
  using type = V;
  static constexpr int unroll = U;
};

/// body(first channel, LaneGroup) over [0, channels): groups of Unroll SIMD registers, then single registers, then scalars.
template <int Unroll, class Body>
inline void for_each_lane_group(int64_t channels, const Body& body) {
  constexpr int64_t width = lane_count<Lanes>;
  int64_t c = 0;
  if constexpr (Unroll > 1)
    for (; c + Unroll * width <= channels; c += Unroll * width) body(c, LaneGroup<Lanes, Unroll>{});
  for (; c + width <= channels; c += width) body(c, LaneGroup<Lanes, 1>{});
  for (; c < channels; ++c) body(c, LaneGroup<real, 1>{});
}

}  // namespace kernels
CAPSTAN_END
