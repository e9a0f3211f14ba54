// Moving elements without changing them, and sums into given places, split among the threads. Every element is summed
// in the order of the index.
// Loops over pointers: no shapes, no tape. A portable build has them once for each level of the CPU
// (core/machine/kernel_levels.hpp). Results depend neither on the number of threads nor on the width of registers:
// tests/core/products/float_in_order.cpp, tests/models/portable_levels.cpp.
#pragma once

#include <cstdint>

#include "core/base/real.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

/// out[r * out_stride + i] = in[r * in_stride + i] for r < rows, i < length.
void copy_blocks(real* out, int64_t out_stride, const real* in, int64_t in_stride, int64_t rows, int64_t length);

/// The row-major block `out` of `rank` <= 6 extents; moving along its axis a moves `strides[a]` elements in `in`. Axes
/// of extent 1 are not allowed, and one axis must have stride 1.
void permute(real* out, const real* in, int rank, const int64_t* extents, const int64_t* strides);

/// out[a, i, c] = x[a, index[i], c];  x: (outer, extent, inner), index: (count), out: (outer, count, inner)
void gather(real* out, const real* x, const int32_t* index, int64_t outer, int64_t extent, int64_t count,
            int64_t inner);
/// out[a, index[i], c] += in[a, i, c]
void scatter_add(real* out, const real* in, const int32_t* index, int64_t outer, int64_t extent, int64_t count,
                 int64_t inner);

}  // namespace capstan::CAPSTAN_PRECISION::kernels
