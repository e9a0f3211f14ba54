// gemv(): outputs are the lanes of registers and inputs are read in their order, so an output is one chain of fused
// multiply-adds. How many panels and rows are computed together differs with the number of rows and changes only the
// speed: tests/core/products/test_packed_matrix.cpp.
#include "core/products/kernels/gemv.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/base/bf16.hpp"
#include "core/kernels/simd.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {
namespace {

using simd::Batch;

/// Registers of a side of a panel: gemv_side outputs whose weights are in the same place of the words of a packing.
constexpr int64_t parts = gemv_side / simd::lanes;
/// Sums that run side by side: eight chains hide the latency of a fused multiply-add.
constexpr int64_t chains = 8;
/// Panels that one row reads side by side: enough for `chains` sums. Several streams also keep memory busy, since the
/// hardware fetches ahead in each of them, but not across a page.
template <class Packed>
constexpr int64_t panels_of_one_row = std::max<int64_t>(1, chains / (gemv_sides<Packed> * parts));
/// Rows that share one reading of a part: their twelve sums, two weights and a value of x fit into the 16 registers of
/// AVX2.
constexpr int64_t rows_together = 6;

/// The matrix to be packed; outputs after its last one read as 0.
struct Unpacked {
  const real* weight;
  int64_t out, in;
  real at(int64_t row, int64_t k) const { return row < out ? weight[row * in + k] : real{0}; }
};

/// Writes the words of all panels [first, last): word(first output of the panel, input, place in the side).
template <class Packed, class Word>
void pack_panels(int64_t in, int64_t first, int64_t last, Packed* packed, const Word& word) {
  Packed* to = packed + first * in * gemv_words<Packed>;
  for (int64_t panel = first; panel < last; ++panel)
    for (int64_t k = 0; k < in; ++k)
      for (int64_t place = 0; place < gemv_words<Packed>; ++place) *to++ = word(panel * gemv_panel<Packed>, k, place);
}

/// The weights of one input and one register of outputs for each side of a panel, as `real`.
void load_part(const real* packed, int64_t part, Batch (&weights)[2]) {
  weights[0] = Batch::load_aligned(packed + part * simd::lanes);
  weights[1] = Batch::load_aligned(packed + (parts + part) * simd::lanes);
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
void load_part(const Int8Quad* packed, int64_t part, Batch (&weights)[4]) {
  alignas(64) real values[4][simd::lanes];
  for (int64_t i = 0; i < simd::lanes; ++i)
    for (int side = 0; side < 4; ++side)
      values[side][i] = static_cast<real>(static_cast<int8_t>(packed[part * simd::lanes + i].bits >> (8 * side)));
  for (int side = 0; side < 4; ++side) weights[side] = Batch::load_aligned(values[side]);
}
#else
void load_part(const Int8Quad* packed, int64_t part, Batch (&weights)[4]) {
  using Words = xsimd::batch<int32_t>;
  const Words words = Words::load_aligned(&packed[part * simd::lanes].bits);
  weights[0] = xsimd::to_float((words << 24) >> 24);
  weights[1] = xsimd::to_float((words << 16) >> 24);
  weights[2] = xsimd::to_float((words << 8) >> 24);
  weights[3] = xsimd::to_float(words >> 24);
}
void load_part(const Bf16Pair* packed, int64_t part, Batch (&weights)[2]) {
  using Words = xsimd::batch<uint32_t>;
  const Words words = Words::load_aligned(&packed[part * simd::lanes].bits);
  weights[0] = xsimd::bitwise_cast<Batch>(words << 16);
  weights[1] = xsimd::bitwise_cast<Batch>(words & Words(0xffff0000u));
}
#endif

/// Writes y of a row for the register of outputs that begins at `first`, with scales and bias.
void finish(const GemvPass& pass, int64_t row, int64_t first, Batch sum) {
  const int64_t left = pass.out - first;
  if (left <= 0) return;
  const auto store = [&](auto at) {
    if (pass.scales != nullptr) sum = sum * at.load(pass.scales + first);
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
  constexpr int64_t step = gemv_words<Packed>, sides = gemv_sides<Packed>;
  const real* const x = pass.x + row * pass.in;
  constexpr int64_t columns = Panels * Parts;
  Batch sums[columns * Rows * sides];
#pragma GCC unroll 64
  for (Batch& sum : sums) sum = Batch(real{0});
  for (int64_t k = 0; k < pass.in; ++k) {
    Batch* to = sums;
#pragma GCC unroll 8
    for (int64_t column = 0; column < columns; ++column) {
      Batch weights[sides];
      load_part(packed + ((first + column / Parts * stride) * pass.in + k) * step, part + column % Parts, weights);
#pragma GCC unroll 8
      for (int64_t r = 0; r < Rows; ++r)
        for (int64_t side = 0; side < sides; ++side, ++to)
          *to = simd::fma(weights[side], Batch(x[r * pass.in + k]), *to);
    }
  }
#pragma GCC unroll 64
  for (int64_t i = 0; i < columns * Rows * sides; ++i) {
    const int64_t column = i / (Rows * sides), r = i / sides % Rows, side = i % sides;
    const int64_t panel = first + column / Parts * stride, in_side = (part + column % Parts) * simd::lanes;
    finish(pass, row + r, panel * gemv_panel<Packed> + side * gemv_side + in_side, sums[i]);
  }
}

/// Computes panels [first, last) for one row. Panels that are far apart are read side by side, each as its own stream.
template <class Packed>
void multiply_one_row(const Packed* packed, const GemvPass& pass, int64_t first, int64_t last) {
  constexpr int64_t together = panels_of_one_row<Packed>;
  const int64_t stride = (last - first) / together;
  for (int64_t panel = first; panel < first + stride; ++panel)
    multiply_together<1, together, parts>(packed, pass, panel, stride, 0, 0);
  for (int64_t panel = first + together * stride; panel < last; ++panel)
    multiply_together<1, 1, parts>(packed, pass, panel, 0, 0, 0);
}

template <class Packed>
void multiply_panels(const Packed* packed, const GemvPass& pass, int64_t first, int64_t last) {
  if (pass.rows == 1) return multiply_one_row(packed, pass, first, last);
  for (int64_t panel = first; panel < last; ++panel) {  // a panel stays in the cache for all rows
    int64_t row = 0;
    const auto take = [&](auto rows) {
      for (; row + rows <= pass.rows; row += rows)
        for (int64_t part = 0; part < parts; ++part) multiply_together<rows, 1, 1>(packed, pass, panel, 0, part, row);
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
  pack_panels(in, first, last, packed, [&](int64_t row, int64_t k, int64_t place) { return from.at(row + place, k); });
}

void gemv_pack(const real* weight, int64_t out, int64_t in, int64_t first, int64_t last, Bf16Pair* packed) {
  const Unpacked from{weight, out, in};
  const auto rounded = [&](int64_t row, int64_t k) {
    return uint32_t{to_bf16(static_cast<float>(from.at(row, k))).bits};
  };
  pack_panels(in, first, last, packed, [&](int64_t row, int64_t k, int64_t place) {
    return Bf16Pair{rounded(row + place, k) | rounded(row + gemv_side + place, k) << 16};
  });
}

void gemv_pack(const real* weight, int64_t out, int64_t in, int64_t first, int64_t last, Int8Quad* packed,
               real* scales) {
  const Unpacked from{weight, out, in};
  const int64_t begin = first * gemv_panel<Int8Quad>, end = std::min(out, last * gemv_panel<Int8Quad>);
  for (int64_t row = begin; row < end; ++row) scales[row] = int8_scale(weight + row * in, in);
  pack_panels(in, first, last, packed, [&](int64_t row, int64_t k, int64_t place) {
    uint32_t bits = 0;
    for (int side = 0; side < 4; ++side) {
      const int64_t output = row + side * gemv_side + place;
      if (output < out && scales[output] > 0)
        bits |=
            (static_cast<uint32_t>(static_cast<int32_t>(std::nearbyint(from.at(output, k) / scales[output]))) & 0xff)
            << (8 * side);
    }
    return Int8Quad{static_cast<int32_t>(bits)};
  });
}

real int8_scale(const real* row, int64_t count) {
  real most = 0;
  for (int64_t k = 0; k < count; ++k) {
    if (!std::isfinite(row[k])) return std::numeric_limits<real>::quiet_NaN();
    most = std::max(most, std::abs(row[k]));
  }
  return most / 127;
}

void gemv(const real* packed, const GemvPass& pass, int64_t first, int64_t last) {
  multiply_panels(packed, pass, first, last);
}

void gemv(const Bf16Pair* packed, const GemvPass& pass, int64_t first, int64_t last) {
  multiply_panels(packed, pass, first, last);
}

void gemv(const Int8Quad* packed, const GemvPass& pass, int64_t first, int64_t last) {
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
