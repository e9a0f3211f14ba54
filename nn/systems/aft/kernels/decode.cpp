// AFT of one token against cached keys and a state of older tokens. All exponents are relative to the largest logit, so
// keys of 10^4 stay finite: tests/nn/systems/aft/test_decode.cpp.
#include "nn/systems/aft/kernels/decode.hpp"

#include <algorithm>
#include <limits>

#include "core/base/math.hpp"
#include "core/kernels/simd.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

void aft_state_clear(const AftState& state, int64_t keys, int64_t channels) {
  for (int64_t key = 0; key < keys; ++key) {
    state.maximum[key] = std::numeric_limits<real>::lowest();
    state.weight[key] = 0;
  }
  for (int64_t c = 0; c < channels; ++c) state.average[c] = 0;
}

namespace {

using simd::Batch;

/// aft_decode() where every channel has its own key: channels are the lanes of registers.
void decode_channels(const AftCache& cache, int64_t t, int64_t count, int64_t channels, const real* bias,
                     const AftState& prefix, const real* q, real* y) {
  simd::sweep(channels, [&](auto at) {
    const auto key = [&](int64_t lag) { return at.load(cache.keys + (t - lag) % cache.capacity * cache.key_stride); };
    const Batch prefix_maximum = at.load(prefix.maximum);
    Batch reference = prefix_maximum;
    for (int64_t lag = 0; lag < count; ++lag) reference = xsimd::max(reference, key(lag));
    // The largest logit, formed as (K - m) + w: (K + w) - m would lose w beside a large key.
    Batch maximum = prefix_maximum - reference;
    for (int64_t lag = 0; lag < count; ++lag) maximum = xsimd::max(maximum, key(lag) - reference + Batch(bias[lag]));
    Batch weight = at.load(prefix.weight) * simd::exp(prefix_maximum - reference - maximum);
    Batch sum = weight * at.load(prefix.average);
    for (int64_t lag = 0; lag < count; ++lag) {
      const Batch e = simd::exp(key(lag) - reference + Batch(bias[lag]) - maximum);
      weight = weight + e;
      sum = sum + e * at.load(cache.values + (t - lag) % cache.capacity * cache.value_stride);
    }
    at.store(y, simd::sigmoid(at.load(q)) * sum / weight);
  });
}

/// aft_decode() where all channels of the group share one key.
void decode_shared(const AftCache& cache, int64_t t, int64_t count, const AftGroup& group, const real* bias,
                   const AftState& prefix, const real* q, real* y) {
  const auto row = [&](int64_t lag) { return (t - lag) % cache.capacity; };
  real reference = *prefix.maximum;
  for (int64_t lag = 0; lag < count; ++lag) reference = std::max(reference, cache.keys[row(lag) * cache.key_stride]);
  real maximum = *prefix.maximum - reference;
  for (int64_t lag = 0; lag < count; ++lag)
    maximum = std::max(maximum, cache.keys[row(lag) * cache.key_stride] - reference + bias[lag]);
  real weight = *prefix.weight * math::exp(*prefix.maximum - reference - maximum);
  for (int64_t c = 0; c < group.channels; ++c) y[c] = weight * prefix.average[c];
  for (int64_t lag = 0; lag < count; ++lag) {
    const real e = math::exp(cache.keys[row(lag) * cache.key_stride] - reference + bias[lag] - maximum);
    const real* const v = cache.values + row(lag) * cache.value_stride;
    weight += e;
    for (int64_t c = 0; c < group.channels; ++c) y[c] += e * v[c];
  }
  simd::sweep(group.channels, [&](auto at) { at.store(y, at.load(y) / Batch(weight) * simd::sigmoid(at.load(q))); });
}

}  // namespace

void aft_decode(const AftCache& cache, int64_t t, int64_t count, const AftGroup& group, const real* bias,
                const AftState& prefix, const real* q, real* y) {
  if (group.shared_key) return decode_shared(cache, t, count, group, bias, prefix, q, y);
  decode_channels(cache, t, count, group.channels, bias, prefix, q, y);
}

}  // namespace capstan::CAPSTAN_PRECISION::kernels
