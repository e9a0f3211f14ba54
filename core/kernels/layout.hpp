// Moving elements without changing them, split among the threads.
#pragma once

#include <cstdint>

#include "core/base/real.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

/// out[r * out_stride + i] = in[r * in_stride + i] for r < rows, i < length.
void copy_blocks(real* out, int64_t out_stride, const real* in, int64_t in_stride, int64_t rows, int64_t length);

/// The row-major block `out` of `rank` <= 6 extents; moving along its axis a moves `strides[a]` elements in `in`. Axes
/// of extent 1 are not allowed, and one axis must have stride 1.
void permute(real* out, const real* in, int rank, const int64_t* extents, const int64_t* strides);

}  // namespace capstan::CAPSTAN_PRECISION::kernels
