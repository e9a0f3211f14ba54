// Loops over contiguous elements in SIMD registers (xsimd), for files in folders called kernels only. A sweep hands its
// body a place: a whole register, or at the end the lanes that are left, so that bodies are written once. Sums over
// lanes are in simd_sums.hpp.
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

}  // namespace capstan::CAPSTAN_PRECISION::kernels::simd
