#include "core/kernels/aft_scan.hpp"

#include <limits>

#include "core/kernels/lanes.hpp"

CAPSTAN_BEGIN
namespace kernels {
namespace {

/// Registers of lanes that advance together: enough channels per token to fill whole cache lines and hide latencies.
constexpr int unroll = 4;

template <class V, int U>
void scan(const AftInput& in, int64_t length, int64_t c, const AftState& state, real* y, int64_t y_stride, real* gate,
          real* average) {
  constexpr int64_t width = lane_count<V>;
  V m[U], weight[U], r[U];
  for (int u = 0; u < U; ++u) {
    m[u] = load<V>(state.maximum + c + u * width);
    weight[u] = load<V>(state.weight + c + u * width);
    r[u] = load<V>(state.average + c + u * width);
  }
  for (int64_t t = 0; t < length; ++t) {
    for (int u = 0; u < U; ++u) {
      const int64_t i = t * in.stride + c + u * width, o = t * y_stride + c + u * width;
      const V k = load<V>(in.k + i);
      // One of e^(m - m') and e^(K - m') is 1, the other e^-|K - m|.
      const V small = lane_exp(-lane_abs(k - m[u]));
      const auto rises = k > m[u];
      const V one(1);
      const V beta = lane_select(rises, one, small);
      weight[u] = lane_select(rises, small, one) * weight[u] + beta;
      m[u] = lane_max(m[u], k);
      const V g = beta / weight[u];
      r[u] = r[u] + g * (load<V>(in.v + i) - r[u]);
      store(y + o, lane_sigmoid(load<V>(in.q + i)) * r[u]);
      if (gate != nullptr) {
        store(gate + o, g);
        store(average + o, r[u]);
      }
    }
  }
  for (int u = 0; u < U; ++u) {
    store(state.maximum + c + u * width, m[u]);
    store(state.weight + c + u * width, weight[u]);
    store(state.average + c + u * width, r[u]);
  }
}

template <class V, int U>
void scan_backward(const AftInput& in, int64_t length, int64_t c, const real* dy, const real* gate, const real* average,
                   int64_t y_stride, const AftGradient& out) {
  constexpr int64_t width = lane_count<V>;
  V b[U], sum[U];  // (1 - g) B and (1 - g) C of the token after
  for (int u = 0; u < U; ++u) b[u] = sum[u] = V(0);
  const V one(1);
  for (int64_t t = length - 1; t >= 0; --t) {
    for (int u = 0; u < U; ++u) {
      const int64_t i = t * in.stride + c + u * width, o = t * y_stride + c + u * width, d = t * out.stride + c + u * width;
      const V g = load<V>(gate + o), r = load<V>(average + o);
      const V open = lane_sigmoid(load<V>(in.q + i));
      const V h = load<V>(dy + o) * open;
      store(out.q + d, h * r * (one - open));
      b[u] = h + b[u];
      sum[u] = h * r + sum[u];
      store(out.v + d, g * b[u]);
      store(out.k + d, g * (load<V>(in.v + i) * b[u] - sum[u]));
      b[u] = (one - g) * b[u];
      sum[u] = (one - g) * sum[u];
    }
  }
}

template <class V>
void pool(const AftInput& in, int64_t length, int64_t c, real* logsum, real* average) {
  V m(std::numeric_limits<real>::lowest());
  for (int64_t t = 0; t < length; ++t) m = lane_max(m, load<V>(in.k + t * in.stride + c));
  V weight(0), sum(0);
  for (int64_t t = 0; t < length; ++t) {
    const V e = lane_exp(load<V>(in.k + t * in.stride + c) - m);
    weight = weight + e;
    sum = sum + e * load<V>(in.v + t * in.stride + c);
  }
  store(logsum + c, m + lane_log(weight));
  store(average + c, sum / weight);
}

template <class V>
void pool_backward(const AftInput& in, int64_t length, int64_t c, const real* dy, int64_t y_stride, const real* logsum,
                   const real* average, const AftGradient& out) {
  const V r = load<V>(average + c), lse = load<V>(logsum + c), one(1);
  V total(0);
  for (int64_t t = 0; t < length; ++t) {
    const V open = lane_sigmoid(load<V>(in.q + t * in.stride + c));
    const V h = load<V>(dy + t * y_stride + c) * open;
    store(out.q + t * out.stride + c, h * r * (one - open));
    total = total + h;
  }
  for (int64_t t = 0; t < length; ++t) {
    const V p = lane_exp(load<V>(in.k + t * in.stride + c) - lse) * total;
    store(out.v + t * out.stride + c, p);
    store(out.k + t * out.stride + c, p * (load<V>(in.v + t * in.stride + c) - r));
  }
}

}  // namespace

void aft_state_clear(const AftState& state, int64_t channels) {
  for (int64_t c = 0; c < channels; ++c) {
    state.maximum[c] = std::numeric_limits<real>::lowest();
    state.weight[c] = state.average[c] = 0;
  }
}

void aft_scan(const AftInput& in, int64_t length, int64_t channels, const AftState& state, real* y, int64_t y_stride, real* gate,
              real* average) {
  for_each_lane_group<unroll>(channels, [&](int64_t c, auto lanes) {
    scan<typename decltype(lanes)::type, decltype(lanes)::unroll>(in, length, c, state, y, y_stride, gate, average);
  });
}

void aft_scan_backward(const AftInput& in, int64_t length, int64_t channels, const real* dy, const real* gate,
                       const real* average, int64_t y_stride, const AftGradient& out) {
  for_each_lane_group<unroll>(channels, [&](int64_t c, auto lanes) {
    scan_backward<typename decltype(lanes)::type, decltype(lanes)::unroll>(in, length, c, dy, gate, average, y_stride, out);
  });
}

void aft_pool(const AftInput& in, int64_t length, int64_t channels, real* logsum, real* average) {
  for_each_lane_group<1>(channels, [&](int64_t c, auto lanes) {
    pool<typename decltype(lanes)::type>(in, length, c, logsum, average);
  });
}

void aft_pool_apply(const AftInput& in, int64_t length, int64_t channels, const real* average, real* y, int64_t y_stride) {
  for (int64_t t = 0; t < length; ++t) {
    for_each_lane_group<1>(channels, [&](int64_t c, auto lanes) {
      using V = typename decltype(lanes)::type;
      store(y + t * y_stride + c, lane_sigmoid(load<V>(in.q + t * in.stride + c)) * load<V>(average + c));
    });
  }
}

void aft_pool_backward(const AftInput& in, int64_t length, int64_t channels, const real* dy, int64_t y_stride, const real* logsum,
                       const real* average, const AftGradient& out) {
  for_each_lane_group<1>(channels, [&](int64_t c, auto lanes) {
    pool_backward<typename decltype(lanes)::type>(in, length, c, dy, y_stride, logsum, average, out);
  });
}

}  // namespace kernels
CAPSTAN_END
