#include "core/kernels/aft_tile.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/kernels/lanes.hpp"

CAPSTAN_BEGIN
namespace kernels {
namespace {

template <class Body>
void for_channels(const AftGroup& group, const Body& body) {
  for_each_lane_group<1>(group.channels, [&](int64_t c, auto lanes) { body(c, typename decltype(lanes)::type(0)); });
}

template <class V>
void carry_channels(const AftInput& in, int64_t length, int64_t c, const AftState& state) {
  V m = load<V>(state.maximum + c), weight = load<V>(state.weight + c), r = load<V>(state.average + c);
  const V one(1);
  for (int64_t t = 0; t < length; ++t) {
    const V k = load<V>(in.k + t * in.stride + c);
    const V small = lane_exp(-lane_abs(k - m));
    const auto rises = k > m;
    const V beta = lane_select(rises, one, small);
    weight = lane_select(rises, small, one) * weight + beta;
    m = lane_max(m, k);
    r = r + beta / weight * (load<V>(in.v + t * in.stride + c) - r);
  }
  store(state.maximum + c, m);
  store(state.weight + c, weight);
  store(state.average + c, r);
}

void carry_shared(const AftInput& in, int64_t length, const AftGroup& group, const AftState& state) {
  for (int64_t t = 0; t < length; ++t) {
    const real k = in.k[t * in.stride], small = std::exp(-std::abs(k - *state.maximum));
    const bool rises = k > *state.maximum;
    const real beta = rises ? 1 : small;
    *state.weight = (rises ? small : 1) * *state.weight + beta;
    *state.maximum = std::max(*state.maximum, k);
    const real gate = beta / *state.weight;
    for_channels(group, [&](int64_t c, auto lane) {
      using V = decltype(lane);
      const V r = load<V>(state.average + c);
      store(state.average + c, r + V(gate) * (load<V>(in.v + t * in.stride + c) - r));
    });
  }
}

}  // namespace

void aft_carry(const AftInput& in, int64_t length, const AftGroup& group, const AftState& state) {
  if (group.shared_key) return carry_shared(in, length, group, state);
  for_channels(group, [&](int64_t c, auto lane) { carry_channels<decltype(lane)>(in, length, c, state); });
}

void aft_key_maximum(const AftInput& in, int64_t length, const AftGroup& group, real* reference) {
  if (group.shared_key) {
    for (int64_t t = 0; t < length; ++t) *reference = std::max(*reference, in.k[t * in.stride]);
    return;
  }
  for_channels(group, [&](int64_t c, auto lane) {
    using V = decltype(lane);
    V m = load<V>(reference + c);
    for (int64_t t = 0; t < length; ++t) m = lane_max(m, load<V>(in.k + t * in.stride + c));
    store(reference + c, m);
  });
}

void aft_pack(const AftInput& in, int64_t length, const AftGroup& group, const real* reference, real* rows, int64_t row_stride) {
  for (int64_t t = 0; t < length; ++t) {
    real* const row = rows + t * row_stride;
    const real *const k = in.k + t * in.stride, *const v = in.v + t * in.stride;
    if (group.shared_key) {
      const real e = std::exp(*k - *reference);
      for_channels(group, [&](int64_t c, auto lane) {
        using V = decltype(lane);
        store(row + c, V(e) * load<V>(v + c));
      });
      row[group.channels] = e;
    } else {
      for_channels(group, [&](int64_t c, auto lane) {
        using V = decltype(lane);
        const V e = lane_exp(load<V>(k + c) - load<V>(reference + c));
        store(row + c, e * load<V>(v + c));
        store(row + group.channels + c, e);
      });
    }
  }
}

void aft_pack_carry(const AftState& carry, const AftGroup& group, const real* reference, real* row) {
  const int64_t step = group.shared_key ? 0 : 1;
  for (int64_t key = 0; key < group.keys(); ++key)
    row[group.channels + key] = carry.weight[key] * std::exp(carry.maximum[key] - reference[key]);
  for (int64_t c = 0; c < group.channels; ++c) row[c] = row[group.channels + c * step] * carry.average[c];
}

bool aft_finish(const AftInput& in, int64_t length, const AftGroup& group, const real* sums, int64_t sum_stride, real floor,
                real* y, real* average, int64_t y_stride, real* denominator, int64_t denominator_stride) {
  bool exact = true;
  for (int64_t t = 0; t < length; ++t) {
    const real* const row = sums + t * sum_stride;
    for (int64_t key = 0; key < group.keys(); ++key) {
      const real d = row[group.channels + key];
      exact = exact && d >= floor;
      denominator[t * denominator_stride + key] = d >= floor ? d : 0;
    }
    for_channels(group, [&](int64_t c, auto lane) {
      using V = decltype(lane);
      const V d = group.shared_key ? V(row[group.channels]) : load<V>(row + group.channels + c);
      const V r = load<V>(row + c) / d;
      store(average + t * y_stride + c, r);
      store(y + t * y_stride + c, lane_sigmoid(load<V>(in.q + t * in.stride + c)) * r);
    });
  }
  return !exact;
}

void aft_start_backward(const AftInput& in, int64_t length, const AftGroup& group, const real* dy, const real* average,
                        int64_t y_stride, const real* denominator, int64_t denominator_stride, real* dq, int64_t dq_stride,
                        real* rows, int64_t row_stride) {
  for (int64_t t = 0; t < length; ++t) {
    real* const row = rows + t * row_stride;
    const real* const d = denominator + t * denominator_stride;
    for_channels(group, [&](int64_t c, auto lane) {
      using V = decltype(lane);
      const V r = load<V>(average + t * y_stride + c), open = lane_sigmoid(load<V>(in.q + t * in.stride + c));
      const V h = load<V>(dy + t * y_stride + c) * open;
      store(dq + t * dq_stride + c, h * r * (V(1) - open));
      const V weight = group.shared_key ? V(*d) : load<V>(d + c);
      const V p = lane_select(weight > V(0), h / weight, V(0));
      store(row + c, p);
      if (!group.shared_key) store(row + group.channels + c, -(p * r));
    });
    if (!group.shared_key) continue;
    real sum = 0;
    for (int64_t c = 0; c < group.channels; ++c) sum -= row[c] * average[t * y_stride + c];
    row[group.channels] = *d > 0 ? sum : 0;
  }
}

void aft_scatter(const AftInput& in, int64_t length, const AftGroup& group, const real* exp_rows, int64_t exp_stride, const real* g,
                 int64_t g_stride, const AftGradient& out) {
  for (int64_t t = 0; t < length; ++t) {
    const real *const e = exp_rows + t * exp_stride + group.channels, *const gv = g + t * g_stride, *const gk = gv + group.channels;
    const real* const v = in.v + t * in.stride;
    real *const dk = out.k + t * out.stride, *const dv = out.v + t * out.stride;
    if (group.shared_key) {
      real sum = *gk;
      for (int64_t c = 0; c < group.channels; ++c) sum += v[c] * gv[c];
      *dk += *e * sum;
    }
    for_channels(group, [&](int64_t c, auto lane) {
      using V = decltype(lane);
      const V weight = group.shared_key ? V(*e) : load<V>(e + c), gradient = load<V>(gv + c);
      store(dv + c, load<V>(dv + c) + weight * gradient);
      if (!group.shared_key) store(dk + c, load<V>(dk + c) + weight * (load<V>(v + c) * gradient + load<V>(gk + c)));
    });
  }
}

void aft_softmax_weights(real* row, int64_t count, real maximum) {
  for_each_lane_group<1>(count, [&](int64_t i, auto lanes) {
    using V = typename decltype(lanes)::type;
    store(row + i, lane_exp(load<V>(row + i) - V(maximum)));
  });
}

}  // namespace kernels
CAPSTAN_END
