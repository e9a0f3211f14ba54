// One query of one head against cached keys and values, on the calling thread: the decode steps of attention, gau and
// flash.
#pragma once

#include <cstdint>

#include "core/base/real.hpp"
#include "nn/systems/quadratic/kernels/attention_kernel.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

/// The visible keys and values of one head, a row each, oldest first; strides count from one row to the next.
struct AttentionCache {
  const real *keys, *values;
  int64_t key_stride, value_stride;
  int64_t count;                   // of rows
  int64_t key_width, value_width;  // Z, E
};

/// y = output_scale * sum_j f(scale (q . k_j) + bias_j) v_j, j over the rows of the cache; softmax normalises. bias:
/// (count) in the order of the rows, or null.  q: (Z), y: (E), written also for count 0 (with 0).
void attention_decode(const AttentionCache& cache, AttentionKernel kernel, real scale, const real* bias,
                      real output_scale, const real* q, real* y);

}  // namespace capstan::CAPSTAN_PRECISION::kernels
