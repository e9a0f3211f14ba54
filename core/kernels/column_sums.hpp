// Passes over the rows of a matrix, and sums over them: gradients of biases and gains, reductions of blocks. Called by
// the kernels of every room. Sums are cut into pieces that depend on the shape alone and are added in order, so that
// results do not depend on the number of threads ("one thread and two give the same bits",
// tests/core/autograd/test_tape.cpp).
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/real.hpp"
#include "core/machine/parallel.hpp"
#include "core/machine/pool.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

/// Where column sums go: data = beta * data + sums; if `data` is null, none are computed.
/// With beta = 0 the old content is never read.
struct ColumnSums {
  real* data = nullptr;
  real beta = 0;
  void add(const real* sums, int64_t columns) const {
    if (data == nullptr) return;
    for (int64_t i = 0; i < columns; ++i) data[i] = beta == 0 ? sums[i] : beta * data[i] + sums[i];
  }
};

/// Rows of `columns` elements that a thread should get at least.
inline int64_t row_grain(int64_t columns) {
  return std::max<int64_t>(1, elementwise_grain / std::max<int64_t>(columns, 1));
}

/// body(row) for all rows of `columns` elements, split among the threads.
template <class Body>
void for_rows(int64_t rows, int64_t columns, const Body& body) {
  parallel_each(rows, row_grain(columns), [&](int64_t row) { body(row); });
}

constexpr int64_t summed_columns = 64;  // by one thread, where the reduced axis is not the last

/// body(o, first column, width) for all o < outer and all blocks of summed_columns of `inner` columns of `count` rows,
/// split among the threads. All sums of one column are made by one thread.
template <class Body>
void for_column_blocks(int64_t outer, int64_t count, int64_t inner, const Body& body) {
  const int64_t blocks = (inner + summed_columns - 1) / summed_columns;
  const int64_t size = std::max<int64_t>(count * std::min(inner, summed_columns), 1);
  parallel_each(outer * blocks, 1 + elementwise_grain / size, [&](int64_t unit) {
    const int64_t first = unit % blocks * summed_columns;
    body(unit / blocks, first, std::min(summed_columns, inner - first));
  });
}

/// body(begin, end, sums) over contiguous pieces of [0, rows), each with `width` sums of its own that start at zero;
/// then finish(sums) with the pieces' sums added up in order. The pieces depend on the rows and the grain alone, and so
/// do all results.
template <class Body, class Finish>
void for_rows_with_sums(int64_t rows, int64_t grain, int64_t width, const Body& body, const Finish& finish) {
  constexpr int64_t most = 32;
  const int64_t pieces = std::clamp<int64_t>(rows / std::max<int64_t>(grain, 1), 1, most);
  const int64_t stride = (width + 31) / 32 * 32;  // no two threads on one cache line
  const Buffer scratch(static_cast<size_t>(pieces * stride) * sizeof(real));
  real* sums = static_cast<real*>(scratch.data());
  parallel_each(pieces, 1, [&](int64_t piece) {
    std::fill_n(sums + piece * stride, width, real{0});
    body(rows * piece / pieces, rows * (piece + 1) / pieces, sums + piece * stride);
  });
  for (int64_t piece = 1; piece < pieces; ++piece)
    for (int64_t i = 0; i < width; ++i) sums[i] += sums[piece * stride + i];
  finish(static_cast<const real*>(sums));
}

/// Sums over the rows of in (rows, columns).
void column_sums(const real* in, ColumnSums out, int64_t rows, int64_t columns);

/// out (outer, inner) = in (outer, middle, inner) summed over middle, in blocks, so that the rounding error grows with
/// the square root of the number of terms at most.
void sum_middle(real* out, const real* in, int64_t outer, int64_t middle, int64_t inner);

}  // namespace capstan::CAPSTAN_PRECISION::kernels
