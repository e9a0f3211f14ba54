#include "core/products/kernels/bf16.hpp"

#include "core/machine/parallel.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

// In integers rather than with the CPU's own instruction, which makes zeros of denormals; both wait for memory.
void round_to_bf16(Bf16* out, const float* in, int64_t count) {
  parallel_each(count, elementwise_grain, [=](int64_t i) { out[i] = to_bf16(in[i]); });
}

}  // namespace capstan::CAPSTAN_PRECISION::kernels
