// Loops over arrays in parallel: fill, copy, add, scale, round to bf16. Each element depends on its own operands alone,
// so the cut into pieces changes no bits.

#include "core/kernels/elementwise.hpp"
#include <cstring>

#include "core/machine/parallel.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

void fill(real* out, int64_t count, real value) {
  parallel_each(count, elementwise_grain, [=](int64_t i) { out[i] = value; });
}

void copy(real* out, const real* in, int64_t count) {
  parallel_for(count, elementwise_grain, [=](int64_t begin, int64_t end) {
    std::memcpy(out + begin, in + begin, static_cast<size_t>(end - begin) * sizeof(real));
  });
}

void add_into(real* out, const real* in, int64_t count) {
  parallel_each(count, elementwise_grain, [=](int64_t i) { out[i] += in[i]; });
}

void take_into(real* out, real* in, int64_t count) {
  parallel_each(count, elementwise_grain, [=](int64_t i) {
    out[i] += in[i];
    in[i] = 0;
  });
}

void add_scaled(real* out, const real* in, int64_t count, real factor) {
  parallel_each(count, elementwise_grain, [=](int64_t i) { out[i] += factor * in[i]; });
}

void scale(real* out, const real* in, int64_t count, real factor) {
  parallel_each(count, elementwise_grain, [=](int64_t i) { out[i] = factor * in[i]; });
}

// In integers rather than with the CPU's own instruction, which makes zeros of denormals and is no faster: both wait
// for memory.
void round_to_bf16(Bf16* out, const float* in, int64_t count) {
  parallel_each(count, elementwise_grain, [=](int64_t i) { out[i] = to_bf16(in[i]); });
}

}  // namespace capstan::CAPSTAN_PRECISION::kernels
