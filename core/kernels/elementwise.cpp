// Loops over arrays in parallel: fill, copy, add, scale, round to bf16. Each element depends on its own operands alone,
// so the cut into pieces changes no bits.

#include "core/kernels/elementwise.hpp"
#include <atomic>
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

bool all_finite(const real* in, int64_t count) {
  std::atomic<bool> finite{true};
  parallel_for(count, elementwise_grain, [&](int64_t begin, int64_t end) {
    // x - x is 0 for finite x and NaN otherwise, and NaN survives the sum: no branch in the loop.
    real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = begin; i < end; ++i) sum += in[i] - in[i];
    if (!(sum == 0)) finite = false;
  });
  return finite;
}

// In integers rather than with the CPU's own instruction, which makes zeros of denormals and is no faster: both wait
// for memory.
void round_to_bf16(Bf16* out, const float* in, int64_t count) {
  parallel_each(count, elementwise_grain, [=](int64_t i) { out[i] = to_bf16(in[i]); });
}

}  // namespace capstan::CAPSTAN_PRECISION::kernels
