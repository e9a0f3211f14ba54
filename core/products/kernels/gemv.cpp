#include "core/products/kernels/gemv.hpp"

#include <algorithm>
#include <cstring>

#include "core/base/bf16.hpp"
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
constexpr int64_t panels_of_one_row = 2 * registers <= chains ? 2 : 1;
/// An output is this many sums, of inputs that take turns. The same for any number of rows and panels, so that a row
/// has the same bits alone and among others.
constexpr int64_t steps = std::max<int64_t>(1, chains / (registers * panels_of_one_row));
/// Rows that share one reading of a panel: as many sums as registers can hold.
constexpr int64_t rows_together = registers * steps <= 4 ? 4 : 2;

/// The matrix that is packed; 0 after its last output.
struct Unpacked {
  const real* weight;
  int64_t out, in;
  real at(int64_t panel, int64_t lane, int64_t k) const {
    const int64_t row = panel * gemv_panel + lane;
    return row < out ? weight[row * in + k] : real{0};
  }
};

void load_panel(const real* packed, Batch (&weights)[registers]) {
  for (int64_t i = 0; i < registers; ++i) weights[i] = Batch::load_aligned(packed + i * simd::lanes);
}

#ifdef CAPSTAN_DOUBLE
void load_panel(const Bf16Pair* packed, Batch (&weights)[registers]) {
  alignas(64) real values[gemv_panel];
  const auto widened = [](uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return static_cast<real>(value);
  };
  for (int64_t i = 0; i < pairs; ++i) {
    values[i] = widened(packed[i].bits << 16);
    values[pairs + i] = widened(packed[i].bits & 0xffff0000u);
  }
  load_panel(values, weights);
}
#else
void load_panel(const Bf16Pair* packed, Batch (&weights)[registers]) {
  using Words = xsimd::batch<uint32_t>;
  constexpr int64_t half = registers / 2;
  for (int64_t i = 0; i < half; ++i) {
    const Words words = Words::load_aligned(&packed[i * simd::lanes].bits);
    weights[i] = xsimd::bitwise_cast<Batch>(words << 16);
    weights[half + i] = xsimd::bitwise_cast<Batch>(words & Words(0xffff0000u));
  }
}
#endif

constexpr int64_t values_per_input(const real*) { return gemv_panel; }
constexpr int64_t values_per_input(const Bf16Pair*) { return pairs; }

/// y of `Rows` rows from `row` on for the outputs of one panel.
template <int Rows>
void finish_panel(const GemvPass& pass, int64_t panel, int64_t row, const Batch (&sums)[Rows][registers]) {
  const int64_t first = panel * gemv_panel;
  for (int64_t r = 0; r < Rows; ++r) {
    real* const y = pass.y + (row + r) * pass.out + first;
    for (int64_t i = 0; i < registers && first + i * simd::lanes < pass.out; ++i) {
      const auto store = [&](auto at) {
        at.store(y, pass.bias == nullptr ? sums[r][i] : sums[r][i] + at.load(pass.bias + first));
      };
      const int64_t left = pass.out - first - i * simd::lanes;
      if (left >= simd::lanes)
        store(simd::FullPlace{i * simd::lanes});
      else
        store(simd::PartPlace{i * simd::lanes, left});
    }
  }
}

/// The panels first, first + stride, ... (Panels of them) times Rows rows from `row` on.
template <int Rows, int64_t Panels, class Packed>
void multiply_together(const Packed* packed, const GemvPass& pass, int64_t first, int64_t stride, int64_t row) {
  const int64_t step = values_per_input(packed);
  const real* const x = pass.x + row * pass.in;
  Batch sums[steps][Panels][Rows][registers];
  for (auto& panels : sums)
    for (auto& rows : panels)
      for (auto& row_sums : rows)
        for (Batch& sum : row_sums) sum = Batch(real{0});
  const auto take = [&](int64_t k, auto& to) {
    for (int64_t p = 0; p < Panels; ++p) {
      Batch weights[registers];
      load_panel(packed + ((first + p * stride) * pass.in + k) * step, weights);
      for (int64_t r = 0; r < Rows; ++r)
        for (int64_t i = 0; i < registers; ++i)
          to[p][r][i] = xsimd::fma(weights[i], Batch(x[r * pass.in + k]), to[p][r][i]);
    }
  };
  int64_t k = 0;
  for (; k + steps <= pass.in; k += steps)
    for (int64_t s = 0; s < steps; ++s) take(k + s, sums[s]);
  for (; k < pass.in; ++k) take(k, sums[0]);
  for (int64_t p = 0; p < Panels; ++p) {
    for (int64_t s = 1; s < steps; ++s)
      for (int64_t r = 0; r < Rows; ++r)
        for (int64_t i = 0; i < registers; ++i) sums[0][p][r][i] += sums[s][p][r][i];
    finish_panel<Rows>(pass, first + p * stride, row, sums[0][p]);
  }
}

template <class Packed>
void multiply_one_row(const Packed* packed, const GemvPass& pass, int64_t first, int64_t last) {
  const int64_t stride = (last - first) / panels_of_one_row;
  for (int64_t panel = first; panel < first + stride; ++panel)
    multiply_together<1, panels_of_one_row>(packed, pass, panel, stride, 0);
  for (int64_t panel = first + panels_of_one_row * stride; panel < last; ++panel)
    multiply_together<1, 1>(packed, pass, panel, 0, 0);
}

template <class Packed>
void multiply_panels(const Packed* packed, const GemvPass& pass, int64_t first, int64_t last) {
  if (pass.rows == 1) return multiply_one_row(packed, pass, first, last);
  for (int64_t panel = first; panel < last; ++panel) {  // a panel stays in the cache for all rows
    int64_t row = 0;
    for (; row + rows_together <= pass.rows; row += rows_together)
      multiply_together<rows_together, 1>(packed, pass, panel, 0, row);
    for (; row < pass.rows; ++row) multiply_together<1, 1>(packed, pass, panel, 0, row);
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
        sums[i] = xsimd::fma(Batch(x[k]), group.places[i].load(matrix + k * stride), sums[i]);
    for (int i = 0; i < group.size; ++i)
      group.places[i].store(y, xsimd::fma(Batch(scale), sums[i], group.places[i].load(y)));
  });
}

}  // namespace capstan::CAPSTAN_PRECISION::kernels
