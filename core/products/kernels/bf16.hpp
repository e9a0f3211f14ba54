// Floats to bf16 and back, split among the threads.
#pragma once

#include "core/base/bf16.hpp"
#include "core/base/real.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace kernels {

/// out = to_bf16(in)
void round_to_bf16(Bf16* out, const float* in, int64_t count);
/// out = to_float(in)
void widen_bf16(float* out, const Bf16* in, int64_t count);

}  // namespace kernels
}  // namespace capstan::CAPSTAN_PRECISION
