// Sums over lanes. A sum has as many terms side by side as the widest register has lanes, whatever a register holds,
// and adds them up along one tree: the same bits at every width (tests/core/products/float_in_order.cpp).
#pragma once

#include <cstdint>

#include "core/kernels/simd.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels::simd {

constexpr int64_t sum_lanes = 64 / static_cast<int64_t>(sizeof(real));
static_assert(sum_lanes % lanes == 0);
constexpr int sum_registers = static_cast<int>(sum_lanes / lanes);

/// A place of sweep_sums, and the register of a sum that its lanes belong to.
template <class Place, int Register>
struct SumPlace : Place {
  static constexpr int in_sum = Register;
};

/// One sum; sum[place] is what the lanes of a place add to.
class Sum {
 public:
  Sum() {
    for (Batch& part : parts_) part = Batch(real{0});
  }
  template <class Place>
  Batch& operator[](const Place&) {
    return parts_[Place::in_sum];
  }
  real total() const {
    alignas(64) real terms[sum_lanes];
    for (int64_t i = 0; i < sum_registers; ++i) parts_[i].store_aligned(terms + i * lanes);
#pragma GCC unroll 4
    for (int64_t half = sum_lanes / 2; half > 0; half /= 2)
      for (int64_t i = 0; i < half; ++i) terms[i] += terms[i + half];
    return terms[0];
  }

 private:
  Batch parts_[sum_registers];
};

/// body(place) over [0, count), with the places of sums.
template <class Body, int... Registers>
inline void sweep_sums(int64_t count, const Body& body, std::integer_sequence<int, Registers...>) {
  int64_t index = 0;
  for (; index + sum_lanes <= count; index += sum_lanes)
    (body(SumPlace<FullPlace, Registers>{{index + Registers * lanes}}), ...);
  const auto rest = [&](auto number) {
    constexpr int at = decltype(number)::value;
    const int64_t left = count - index - at * lanes;
    if (at + 1 < sum_registers && left >= lanes)
      body(SumPlace<FullPlace, at>{{index + at * lanes}});
    else if (left > 0)
      body(SumPlace<PartPlace, at>{{index + at * lanes, left}});
  };
  (rest(std::integral_constant<int, Registers>()), ...);
}
template <class Body>
inline void sweep_sums(int64_t count, const Body& body) {
  sweep_sums(count, body, std::make_integer_sequence<int, sum_registers>());
}

/// The sum of `count` elements.
inline real sum(const real* x, int64_t count) {
  Sum total;
  sweep_sums(count, [&](auto at) { total[at] += at.load(x); });
  return total.total();
}

/// a . b
inline real dot(const real* a, const real* b, int64_t count) {
  Sum sum;
  sweep_sums(count, [&](auto at) { sum[at] = fma(at.load(a), at.load(b), sum[at]); });
  return sum.total();
}

/// The largest lane.
inline real maximum(const Batch& value) {
  alignas(64) real buffer[lanes];
  value.store_aligned(buffer);
  real result = buffer[0];
  for (int64_t lane = 1; lane < lanes; ++lane) result = buffer[lane] > result ? buffer[lane] : result;
  return result;
}

}  // namespace capstan::CAPSTAN_PRECISION::kernels::simd
