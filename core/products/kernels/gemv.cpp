#include "core/products/kernels/gemv.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "core/base/small_floats.hpp"
#include "core/kernels/simd.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {
namespace {

using simd::Batch;

constexpr int64_t registers = gemv_panel / simd::lanes;
constexpr int64_t pairs = gemv_panel / 2;
/// Sums that run side by side: enough to hide the latency of an addition.
constexpr int64_t chains = 8;
/// Panels that one row reads side by side: the hardware fetches ahead in each of them, but not across a page (measured:
/// 28 to 29 GB/s of one core with two, 25 with one).
constexpr int64_t panels_of_one_row = std::max<int64_t>(1, chains / registers);
/// A part of a panel is the registers i and half + i, which share the words of a packing in bf16.
constexpr int64_t half = registers / 2;
/// Rows that share one reading of a part: with twelve sums two weights and a value of x still find
/// registers of their own.
constexpr int64_t rows_together = 6;

/// The matrix that is packed; 0 after its last output.
struct Unpacked {
  const real* weight;
  int64_t out, in;
  real at(int64_t panel, int64_t lane, int64_t k) const {
    const int64_t row = panel * gemv_panel + lane;
    return row < out ? weight[row * in + k] : real{0};
  }
};

void load_part(const real* packed, int64_t part, Batch (&weights)[2]) {
  weights[0] = Batch::load_aligned(packed + part * simd::lanes);
  weights[1] = Batch::load_aligned(packed + (half + part) * simd::lanes);
}

#ifdef CAPSTAN_DOUBLE
void load_part(const Bf16Pair* packed, int64_t part, Batch (&weights)[2]) {
  alignas(64) real values[2][simd::lanes];
  const auto widened = [](uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return static_cast<real>(value);
  };
  for (int64_t i = 0; i < simd::lanes; ++i) {
    const uint32_t bits = packed[part * simd::lanes + i].bits;
    values[0][i] = widened(bits << 16);
    values[1][i] = widened(bits & 0xffff0000u);
  }
  for (int side = 0; side < 2; ++side) weights[side] = Batch::load_aligned(values[side]);
}
#else
void load_part(const Bf16Pair* packed, int64_t part, Batch (&weights)[2]) {
  using Words = xsimd::batch<uint32_t>;
  const Words words = Words::load_aligned(&packed[part * simd::lanes].bits);
  weights[0] = xsimd::bitwise_cast<Batch>(words << 16);
  weights[1] = xsimd::bitwise_cast<Batch>(words & Words(0xffff0000u));
}
#endif

constexpr int64_t values_per_input(const real*) { return gemv_panel; }
constexpr int64_t values_per_input(const Bf16Pair*) { return pairs; }

/// y of a row for a register of a panel's outputs.
void finish(const GemvPass& pass, int64_t row, int64_t panel, int64_t in_panel, Batch sum) {
  const int64_t first = panel * gemv_panel + in_panel * simd::lanes, left = pass.out - first;
  if (left <= 0) return;
  const auto store = [&](auto at) {
    at.store(pass.y + row * pass.out + first, pass.bias == nullptr ? sum : sum + at.load(pass.bias + first));
  };
  if (left >= simd::lanes)
    store(simd::FullPlace{0});
  else
    store(simd::PartPlace{0, left});
}

/// Rows rows from `row` on times Parts parts, from `part` on, of the panels first, first + stride, ... (Panels of
/// them). GCC keeps the sums in registers only where every loop over them is unrolled in time, which it does not do by
/// itself for the 24 of AVX-512: there they stayed in memory and halved the speed.
template <int Rows, int64_t Panels, int64_t Parts, class Packed>
void multiply_together(const Packed* packed, const GemvPass& pass, int64_t first, int64_t stride, int64_t part,
                       int64_t row) {
  const int64_t step = values_per_input(packed);
  const real* const x = pass.x + row * pass.in;
  constexpr int64_t columns = Panels * Parts;
  Batch sums[columns * Rows * 2];
#pragma GCC unroll 64
  for (Batch& sum : sums) sum = Batch(real{0});
  for (int64_t k = 0; k < pass.in; ++k) {
    Batch* to = sums;
#pragma GCC unroll 8
    for (int64_t column = 0; column < columns; ++column) {
      Batch weights[2];
      load_part(packed + ((first + column / Parts * stride) * pass.in + k) * step, part + column % Parts, weights);
#pragma GCC unroll 8
      for (int64_t r = 0; r < Rows; ++r)
        for (int side = 0; side < 2; ++side, ++to) *to = simd::fma(weights[side], Batch(x[r * pass.in + k]), *to);
    }
  }
#pragma GCC unroll 64
  for (int64_t i = 0; i < columns * Rows * 2; ++i) {
    const int64_t column = i / (Rows * 2), r = i / 2 % Rows, side = i % 2;
    finish(pass, row + r, first + column / Parts * stride, side * half + part + column % Parts, sums[i]);
  }
}

template <class Packed>
void multiply_one_row(const Packed* packed, const GemvPass& pass, int64_t first, int64_t last) {
  const int64_t stride = (last - first) / panels_of_one_row;
  for (int64_t panel = first; panel < first + stride; ++panel)
    multiply_together<1, panels_of_one_row, half>(packed, pass, panel, stride, 0, 0);
  for (int64_t panel = first + panels_of_one_row * stride; panel < last; ++panel)
    multiply_together<1, 1, half>(packed, pass, panel, 0, 0, 0);
}

template <class Packed>
void multiply_panels(const Packed* packed, const GemvPass& pass, int64_t first, int64_t last) {
  if (pass.rows == 1) return multiply_one_row(packed, pass, first, last);
  for (int64_t panel = first; panel < last; ++panel) {  // a panel stays in the cache for all rows
    int64_t row = 0;
    const auto take = [&](auto rows) {
      for (; row + rows <= pass.rows; row += rows)
        for (int64_t part = 0; part < half; ++part) multiply_together<rows, 1, 1>(packed, pass, panel, 0, part, row);
    };
    take(std::integral_constant<int, rows_together>());
    take(std::integral_constant<int, 4>());
    take(std::integral_constant<int, 2>());
    take(std::integral_constant<int, 1>());
  }
}

}  // namespace

void gemv_pack(const real* weight, int64_t out, int64_t in, int64_t first, int64_t last, real* packed) {
  const Unpacked from{weight, out, in};
  real* to = packed + first * in * gemv_panel;
  for (int64_t panel = first; panel < last; ++panel)
    for (int64_t k = 0; k < in; ++k)
      for (int64_t lane = 0; lane < gemv_panel; ++lane) *to++ = from.at(panel, lane, k);
}

void gemv_pack(const real* weight, int64_t out, int64_t in, int64_t first, int64_t last, Bf16Pair* packed) {
  const Unpacked from{weight, out, in};
  const auto rounded = [&](int64_t panel, int64_t lane, int64_t k) {
    return uint32_t{to_bf16(static_cast<float>(from.at(panel, lane, k))).bits};
  };
  Bf16Pair* to = packed + first * in * pairs;
  for (int64_t panel = first; panel < last; ++panel)
    for (int64_t k = 0; k < in; ++k)
      for (int64_t lane = 0; lane < pairs; ++lane)
        *to++ = {rounded(panel, lane, k) | rounded(panel, pairs + lane, k) << 16};
}

void gemv(const real* packed, const GemvPass& pass, int64_t first, int64_t last) {
  multiply_panels(packed, pass, first, last);
}

void gemv(const Bf16Pair* packed, const GemvPass& pass, int64_t first, int64_t last) {
  multiply_panels(packed, pass, first, last);
}

void row_times_matrix(const real* x, int64_t in, const real* matrix, int64_t stride, int64_t columns, real scale,
                      real* y) {
  simd::sweep_groups<8>(columns, [&](auto group) {
    Batch sums[group.size];
    for (Batch& sum : sums) sum = Batch(real{0});
    for (int64_t k = 0; k < in; ++k)
      for (int i = 0; i < group.size; ++i)
        sums[i] = simd::fma(Batch(x[k]), group.places[i].load(matrix + k * stride), sums[i]);
    for (int i = 0; i < group.size; ++i)
      group.places[i].store(y, simd::fma(Batch(scale), sums[i], group.places[i].load(y)));
  });
}

}  // namespace capstan::CAPSTAN_PRECISION::kernels
