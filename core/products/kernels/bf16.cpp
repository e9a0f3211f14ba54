#include "core/products/kernels/bf16.hpp"

#include "core/machine/parallel.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace kernels {
namespace {

constexpr int64_t grain = 16384;  // elements; below it a second thread costs more than it brings

}  // namespace

// In integers rather than with the CPU's own instruction, which makes zeros of denormals; both wait for memory.
void round_to_bf16(Bf16* out, const float* in, int64_t count) {
  parallel_for(count, grain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = to_bf16(in[i]);
  });
}

void widen_bf16(float* out, const Bf16* in, int64_t count) {
  parallel_for(count, grain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = to_float(in[i]);
  });
}

}  // namespace kernels
}  // namespace capstan::CAPSTAN_PRECISION
