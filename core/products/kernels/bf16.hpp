// Floats to bf16, split among the threads.
#pragma once

#include "core/base/bf16.hpp"
#include "core/base/real.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

/// out = to_bf16(in)
void round_to_bf16(Bf16* out, const float* in, int64_t count);

}  // namespace capstan::CAPSTAN_PRECISION::kernels
