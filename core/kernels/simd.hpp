// Loops over contiguous elements in SIMD registers (xsimd), for files in folders called kernels only. A sweep hands its
// body a place: a whole register, or at the end the lanes that are left, so that bodies are written once. Sums over
// lanes go through sweep_sums(), whose bits do not depend on the width of a register
// (tests/core/products/float_in_order.cpp).
#pragma once

#include <cstdint>
#include <utility>
#include <xsimd/xsimd.hpp>

#include "core/base/real.hpp"
#include "core/kernels/simd_functions.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels::simd {

using capstan::simd::exp;
using capstan::simd::fma;
using capstan::simd::log;
using capstan::simd::log1p;
using capstan::simd::polynomial;
using capstan::simd::tanh;

using Batch = xsimd::batch<real>;
constexpr int64_t lanes = static_cast<int64_t>(Batch::size);

/// `lanes` elements from `index` on.
struct FullPlace {
  int64_t index;
  Batch load(const real* from, real /*rest*/ = 0) const { return Batch::load_unaligned(from + index); }
  void store(real* to, const Batch& value) const { value.store_unaligned(to + index); }
};

/// Fewer than `lanes` elements from `index` on; the other lanes are loaded as `rest` and never stored.
struct PartPlace {
  int64_t index;
  int64_t count;
  Batch load(const real* from, real rest = 0) const {
    alignas(64) real buffer[lanes];
    for (int64_t lane = 0; lane < lanes; ++lane) buffer[lane] = lane < count ? from[index + lane] : rest;
    return Batch::load_aligned(buffer);
  }
  void store(real* to, const Batch& value) const {
    alignas(64) real buffer[lanes];
    value.store_aligned(buffer);
    for (int64_t lane = 0; lane < count; ++lane) to[index + lane] = buffer[lane];
  }
};

/// 1 / (1 + e^-x), with the exact limits at both ends: e^-x saturates to 0, or to infinity, whose reciprocal is 0.
inline Batch sigmoid(const Batch& x) { return Batch(1) / (Batch(1) + exp(-x)); }

/// body(place) over [0, count).
template <class Body>
inline void sweep(int64_t count, const Body& body) {
  int64_t index = 0;
  for (; index + lanes <= count; index += lanes) body(FullPlace{index});
  if (index < count) body(PartPlace{index, count - index});
}

/// Places that one call of a body computes together, as independent chains that hide latencies.
template <class Place, int Size>
struct Group {
  Place places[Size];
  static constexpr int size = Size;
};

/// body(group) over [0, count): groups of Size whole registers, then single elements.
template <int Size, class Body>
inline void sweep_groups(int64_t count, const Body& body) {
  int64_t index = 0;
  for (; index + Size * lanes <= count; index += Size * lanes) {
    Group<FullPlace, Size> group;
    for (int i = 0; i < Size; ++i) group.places[i] = FullPlace{index + i * lanes};
    body(group);
  }
  sweep(count - index, [&](auto at) {
    at.index += index;
    body(Group<decltype(at), 1>{{at}});
  });
}

// Sums over lanes. A sum has as many terms side by side as the widest register has lanes, whatever a register holds,
// and adds them up along one tree: the same bits at every width.

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
