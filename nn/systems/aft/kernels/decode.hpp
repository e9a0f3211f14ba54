// One token of AFT with a position bias, from cached keys and values.
#pragma once

#include <cstdint>

#include "nn/systems/aft/kernels/tile.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

/// The last tokens of one sequence: token p is in row p % capacity of both.
struct AftCache {
  const real *keys, *values;
  int64_t key_stride, value_stride, capacity;
};

/// Y of token `t` for the channels of one group: sources t - count + 1 ... t from the cache with w = bias[lag],
/// all earlier ones from `prefix` with w = 0 (cleared state: nothing before). q, y: (channels).
void aft_decode(const AftCache& cache, int64_t t, int64_t count, const AftGroup& group, const real* bias,
                const AftState& prefix, const real* q, real* y);

}  // namespace capstan::CAPSTAN_PRECISION::kernels
