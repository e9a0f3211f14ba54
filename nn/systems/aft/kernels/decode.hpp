// What all kernels of AFT read and write, and the kernel of a decode step with a position bias: one token against
// cached keys and values. The step is Aft::step(); tests/nn/systems/aft/test_decode.cpp holds it to the op.
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

/// A run of value channels with their keys: one key per channel, or one for all.
struct AftGroup {
  int64_t channels;
  bool shared_key;
  int64_t keys() const { return shared_key ? 1 : channels; }
  int64_t columns() const { return channels + keys(); }
};

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
