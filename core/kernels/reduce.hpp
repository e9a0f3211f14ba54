// Reductions of (outer, middle, inner) blocks along `middle`. Results do not depend on the number of threads.
#pragma once

#include <cstdint>

#include "core/base/real.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

/// out (outer, inner) = sum over middle. Summed in blocks, so that the rounding error grows with the square root of the
/// number of terms at most.
void sum_middle(real* out, const real* in, int64_t outer, int64_t middle, int64_t inner);

}  // namespace capstan::CAPSTAN_PRECISION::kernels
