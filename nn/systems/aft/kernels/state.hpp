// What the kernels of AFT read and write: rows of q|k|v, their gradients, and the recurrent state.
#pragma once

#include <cstdint>

#include "core/base/real.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

/// q|k|v of consecutive tokens: pointers to the first channel of the first token,
/// `stride` elements from token to token.
struct AftInput {
  const real *q, *k, *v;
  int64_t stride;
};

/// Gradients in the same layout as AftInput.
struct AftGradient {
  real *q, *k, *v;
  int64_t stride;
};

/// The recurrent state of one channel is (m, D, R): running maximum of the keys, sum of e^(K - m), weighted average of
/// the values. m and D have a value per key, R one per channel; channels may share a key.
struct AftState {
  real *maximum, *weight, *average;
};
/// The state before the first token.
void aft_state_clear(const AftState& state, int64_t keys, int64_t channels);

}  // namespace capstan::CAPSTAN_PRECISION::kernels
