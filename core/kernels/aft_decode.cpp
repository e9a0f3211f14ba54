#include "core/kernels/aft_decode.hpp"

#include <cmath>

#include "core/kernels/lanes.hpp"

CAPSTAN_BEGIN
namespace kernels {
namespace {

/// V: SIMD lanes of channels with a key each.
template <class V>
void decode_channels(const AftCache& cache, int64_t t, int64_t count, int64_t c, const real* bias, const AftState& prefix,
                     const real* q, real* y) {
  const auto row = [&](int64_t lag) { return (t - lag) % cache.capacity; };
  const auto key = [&](int64_t lag) { return load<V>(cache.keys + row(lag) * cache.key_stride + c); };
  const V prefix_maximum = load<V>(prefix.maximum + c);
  V reference = prefix_maximum;
  for (int64_t lag = 0; lag < count; ++lag) reference = lane_max(reference, key(lag));
  // The largest logit, formed as (K - m) + w: (K + w) - m would lose w beside a large key.
  V maximum = prefix_maximum - reference;
  for (int64_t lag = 0; lag < count; ++lag) maximum = lane_max(maximum, key(lag) - reference + V(bias[lag]));
  V weight = load<V>(prefix.weight + c) * lane_exp(prefix_maximum - reference - maximum);
  V sum = weight * load<V>(prefix.average + c);
  for (int64_t lag = 0; lag < count; ++lag) {
    const V e = lane_exp(key(lag) - reference + V(bias[lag]) - maximum);
    weight = weight + e;
    sum = sum + e * load<V>(cache.values + row(lag) * cache.value_stride + c);
  }
  store(y + c, lane_sigmoid(load<V>(q + c)) * sum / weight);
}

/// All channels share one key.
void decode_shared(const AftCache& cache, int64_t t, int64_t count, const AftGroup& group, const real* bias,
                   const AftState& prefix, const real* q, real* y) {
  const auto row = [&](int64_t lag) { return (t - lag) % cache.capacity; };
  real reference = *prefix.maximum;
  for (int64_t lag = 0; lag < count; ++lag) reference = std::max(reference, cache.keys[row(lag) * cache.key_stride]);
  real maximum = *prefix.maximum - reference;
  for (int64_t lag = 0; lag < count; ++lag)
    maximum = std::max(maximum, cache.keys[row(lag) * cache.key_stride] - reference + bias[lag]);
  real weight = *prefix.weight * std::exp(*prefix.maximum - reference - maximum);
  for (int64_t c = 0; c < group.channels; ++c) y[c] = weight * prefix.average[c];
  for (int64_t lag = 0; lag < count; ++lag) {
    const real e = std::exp(cache.keys[row(lag) * cache.key_stride] - reference + bias[lag] - maximum);
    const real* const v = cache.values + row(lag) * cache.value_stride;
    weight += e;
    for (int64_t c = 0; c < group.channels; ++c) y[c] += e * v[c];
  }
  for (int64_t c = 0; c < group.channels; ++c) y[c] = y[c] / weight / (1 + std::exp(-q[c]));
}

}  // namespace

void aft_decode(const AftCache& cache, int64_t t, int64_t count, const AftGroup& group, const real* bias, const AftState& prefix,
                const real* q, real* y) {
  if (group.shared_key) return decode_shared(cache, t, count, group, bias, prefix, q, y);
  for_each_lane_group<1>(group.channels, [&](int64_t c, auto lanes) {
    decode_channels<typename decltype(lanes)::type>(cache, t, count, c, bias, prefix, q, y);
  });
}

}  // namespace kernels
CAPSTAN_END
