// permute() copies runs where the last axis of the result is contiguous in `in`; elsewhere it transposes tiles of 16
// columns, so that both sides are read and written in whole cache lines.

#include "core/kernels/layout.hpp"
#include <algorithm>
#include <cstring>

#include "core/kernels/column_sums.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {
namespace {

constexpr int64_t tile = 16;  // one cache line of float is read and written whole
constexpr int max_rank = 6;

/// The axes that are counted one by one: find() tells where their block number `unit` starts, in `out` and in `in`.
struct Walk {
  int rank = 0;
  int64_t count = 1;
  int64_t extents[max_rank], out_strides[max_rank], in_strides[max_rank];

  void add(int64_t extent, int64_t out_stride, int64_t in_stride) {
    extents[rank] = extent, out_strides[rank] = out_stride, in_strides[rank] = in_stride;
    count *= extent;
    ++rank;
  }
  void find(int64_t unit, int64_t& out, int64_t& in) const {
    out = in = 0;
    for (int axis = rank - 1; axis >= 0; --axis) {
      const int64_t index = unit % extents[axis];
      unit /= extents[axis];
      out += index * out_strides[axis];
      in += index * in_strides[axis];
    }
  }
};

void copy_run(real* out, const real* in, int64_t count) {
  std::memcpy(out, in, static_cast<size_t>(count) * sizeof(real));
}

/// out (rows, columns) with stride `out_stride` = in transposed, `in_stride` apart along columns.
void transpose_tile(real* out, int64_t out_stride, const real* in, int64_t in_stride, int64_t rows, int64_t columns) {
  for (int64_t first = 0; first < columns; first += tile) {
    const int64_t last = std::min(first + tile, columns);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = first; c < last; ++c) out[r * out_stride + c] = in[c * in_stride + r];
  }
}

}  // namespace

void copy_blocks(real* out, int64_t out_stride, const real* in, int64_t in_stride, int64_t rows, int64_t length) {
  if (length == 0) return;
  parallel_each(rows, 1 + elementwise_grain / length,
                [=](int64_t r) { copy_run(out + r * out_stride, in + r * in_stride, length); });
}

void permute(real* out, const real* in, int rank, const int64_t* extents, const int64_t* strides) {
  int64_t out_strides[max_rank];
  int64_t size = 1;
  for (int axis = rank - 1; axis >= 0; --axis) {
    out_strides[axis] = size;
    size *= extents[axis];
  }
  if (size == 0) return;
  if (rank == 0) return copy_run(out, in, 1);
  const int last = rank - 1;
  const int contiguous = static_cast<int>(std::find(strides, strides + rank, 1) - strides);
  Walk walk;
  for (int axis = 0; axis < last; ++axis)
    if (axis != contiguous) walk.add(extents[axis], out_strides[axis], strides[axis]);
  if (contiguous == last) {
    parallel_each(walk.count, 1 + elementwise_grain / extents[last], [&](int64_t unit) {
      int64_t to, from;
      walk.find(unit, to, from);
      copy_run(out + to, in + from, extents[last]);
    });
    return;
  }
  const int64_t tiles = (extents[contiguous] + tile - 1) / tile;
  parallel_each(walk.count * tiles, 1 + elementwise_grain / (tile * extents[last]), [&](int64_t unit) {
    int64_t to, from;
    walk.find(unit / tiles, to, from);
    const int64_t first = unit % tiles * tile;
    transpose_tile(out + to + first * out_strides[contiguous], out_strides[contiguous], in + from + first,
                   strides[last], std::min(tile, extents[contiguous] - first), extents[last]);
  });
}

void gather(real* out, const real* x, const int32_t* index, int64_t outer, int64_t extent, int64_t count,
            int64_t inner) {
  parallel_each(outer * count, 1 + elementwise_grain / std::max<int64_t>(inner, 1), [=](int64_t row) {
    copy_run(out + row * inner, x + (row / count * extent + index[row % count]) * inner, inner);
  });
}

void scatter_add(real* out, const real* in, const int32_t* index, int64_t outer, int64_t extent, int64_t count,
                 int64_t inner) {
  for_column_blocks(outer, count, inner, [=](int64_t a, int64_t first, int64_t width) {
    for (int64_t i = 0; i < count; ++i) {
      real* const to = out + (a * extent + index[i]) * inner + first;
      const real* const from = in + (a * count + i) * inner + first;
      for (int64_t c = 0; c < width; ++c) to[c] += from[c];
    }
  });
}

}  // namespace capstan::CAPSTAN_PRECISION::kernels
