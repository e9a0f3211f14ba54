// sum_middle() cuts a long sum into blocks of 512 terms, which are added in working precision, and adds the blocks in
// double; tests/core/ops/test_ops.cpp bounds the error. column_sums(), of gradients, adds rows in at most 32 pieces.
// All cuts depend on the shape alone.
#include "core/kernels/column_sums.hpp"

#include "core/kernels/simd.hpp"
#include "core/kernels/simd_sums.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {
namespace {

constexpr int64_t block = 512;  // terms summed in working precision before they join the rest

real sum_run(const real* in, int64_t count) {
  double total = 0;
  for (int64_t first = 0; first < count; first += block) {
    total += simd::sum(in + first, std::min(block, count - first));
  }
  return static_cast<real>(total);
}

/// A single long run: its blocks are shared out, and their sums added in order.
real sum_long_run(const real* in, int64_t count) {
  constexpr int64_t pieces = 64;
  double sums[pieces];
  const int64_t length = (count + pieces - 1) / pieces;
  parallel_each(pieces, std::max<int64_t>(1, elementwise_grain / length), [&](int64_t piece) {
    const int64_t first = std::min(piece * length, count);
    sums[piece] = sum_run(in + first, std::min(length, count - first));
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return static_cast<real>(total);
}

/// Sums of `width` columns over the middle axis, as sum_run() for each.
void sum_columns(real* out, const real* in, int64_t middle, int64_t stride, int64_t width) {
  double total[summed_columns] = {};
  real sum[summed_columns];
  for (int64_t first = 0; first < middle; first += block) {
    std::fill_n(sum, width, real{0});
    for (int64_t m = first; m < std::min(first + block, middle); ++m)
      for (int64_t i = 0; i < width; ++i) sum[i] += in[m * stride + i];
    for (int64_t i = 0; i < width; ++i) total[i] += sum[i];
  }
  for (int64_t i = 0; i < width; ++i) out[i] = static_cast<real>(total[i]);
}

}  // namespace

void sum_middle(real* out, const real* in, int64_t outer, int64_t middle, int64_t inner) {
  if (inner == 1 && outer == 1) {
    out[0] = sum_long_run(in, middle);
  } else if (inner == 1) {
    parallel_each(outer, 1 + elementwise_grain / std::max<int64_t>(middle, 1),
                  [&](int64_t o) { out[o] = sum_run(in + o * middle, middle); });
  } else {
    for_column_blocks(outer, middle, inner, [&](int64_t o, int64_t first, int64_t width) {
      sum_columns(out + o * inner + first, in + o * middle * inner + first, middle, inner, width);
    });
  }
}

void column_sums(const real* in, ColumnSums out, int64_t rows, int64_t columns) {
  if (out.data == nullptr) return;
  for_rows_with_sums(
      rows, row_grain(columns), columns,
      [&](int64_t begin, int64_t end, real* sums) {
        for (int64_t row = begin; row < end; ++row)
          simd::sweep(columns, [&](auto at) { at.store(sums, at.load(sums) + at.load(in + row * columns)); });
      },
      [&](const real* sums) { out.add(sums, columns); });
}

}  // namespace capstan::CAPSTAN_PRECISION::kernels
