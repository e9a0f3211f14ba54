// Copies from and sums into given places. Every element is summed in the order of the index: results do not depend on
// the number of threads.
#pragma once

#include <cstdint>

#include "core/base/real.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

/// out[a, i, c] = x[a, index[i], c];  x: (outer, extent, inner), index: (count), out: (outer, count, inner)
void gather(real* out, const real* x, const int32_t* index, int64_t outer, int64_t extent, int64_t count,
            int64_t inner);
/// out[a, index[i], c] += in[a, i, c]
void scatter_add(real* out, const real* in, const int32_t* index, int64_t outer, int64_t extent, int64_t count,
                 int64_t inner);

}  // namespace capstan::CAPSTAN_PRECISION::kernels
