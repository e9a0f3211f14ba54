// The definition of the AFT ops: the fused ones are held to it (tests/nn/systems/aft/test_op.cpp), so it stays as close
// to the paper's equations as primitives allow, whatever it costs.
#include "nn/systems/aft/composed.hpp"

#include <cmath>

#include "core/array/segments.hpp"
#include "core/array/visibility.hpp"
#include "core/ops/ops.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// R_tc = sum_s p_tsc V_sc with p = softmax over the visible s of K_sc + w_tsc, Y = sigmoid(Q) R.
/// q, k, v: (B, T, D); w: (B or 1, T, T, D or 1).
Var mix(const Var& q, const Var& k, const Var& v, const Var& w, const Segments& segments, bool causal) {
  const int64_t batch = q.dim(0), length = q.dim(1), width = q.dim(2);
  // (B, 1, D, S): the softmax wants the sources on the last axis.
  const auto sources = [&](const Var& x) { return transpose(reshape(x, {batch, 1, length, width}), {0, 1, 3, 2}); };
  const Var logits = sources(k) + transpose(w, {0, 1, 3, 2});
  const Var weights = softmax(logits, visibility(segments, causal).reshape(Shape{batch, length, 1, length}));
  return sigmoid(q) * sum(weights * sources(v), {3});
}

/// 1 where |t - s| < window (everywhere for window 0), positions counted within documents: (B, T, T).
Array inside_window(const Segments& segments, int64_t window) {
  const int64_t batch = segments.batch(), length = segments.length();
  Array mask(Shape{batch, length, length});
  real* inside = mask.mutable_data();
  for (int64_t b = 0; b < batch; ++b) {
    const int32_t* const position = segments.positions().data() + b * length;
    for (int64_t t = 0; t < length; ++t)
      for (int64_t s = 0; s < length; ++s)
        *inside++ = window == 0 || std::abs(position[t] - position[s]) < window ? 1 : 0;
  }
  return mask;
}

/// w inside the window, 0 outside.
Var windowed(const Var& w, const Segments& segments, int64_t window) {
  return where(inside_window(segments, window), w, Var(Array::scalar(0)));
}

/// mix() for the packed projection q|k|v and w: (B or 1, T, T), the same for all channels.
Var mix_packed(const Var& qkv, const Var& w, const Segments& segments, bool causal) {
  const int64_t width = qkv.dim(2) / 3;
  const std::vector<Var> parts = split(qkv, 2, {width, width, width});
  return mix(parts[0], parts[1], parts[2], reshape(w, {w.dim(0), w.dim(1), w.dim(2), 1}), segments, causal);
}

}  // namespace

Var aft_simple_composed(const Var& qkv, const Segments& segments, bool causal) {
  const int64_t length = qkv.dim(1);
  return mix_packed(qkv, Var(Array::zeros(Shape{1, length, length})), segments, causal);
}

Var aft_factorised_bias(const Var& u, const Var& v, const Segments& segments, int64_t window) {
  const Var rows_u = embedding(u, segments.positions()), rows_v = embedding(v, segments.positions());
  return windowed(matmul(rows_u, rows_v, {Transpose::no, Transpose::yes}), segments, window);
}

Var aft_factorised_composed(const Var& qkv, const Var& u, const Var& v, const Segments& segments, bool causal,
                            int64_t window) {
  return mix_packed(qkv, aft_factorised_bias(u, v, segments, window), segments, causal);
}

Var aft_dense_bias(const Var& w, const Segments& segments, int64_t window) {
  const int64_t batch = segments.batch(), length = segments.length(), known = w.dim(1);
  Ids flat(Shape{batch, length, length});
  int32_t* index = flat.mutable_data();
  for (int64_t b = 0; b < batch; ++b) {
    const int32_t* const position = segments.positions().data() + b * length;
    for (int64_t t = 0; t < length; ++t)
      for (int64_t s = 0; s < length; ++s) *index++ = static_cast<int32_t>(position[t] * known + position[s]);
  }
  return windowed(gather(reshape(w, {w.size()}), flat), segments, window);
}

Var aft_dense_composed(const Var& qkv, const Var& w, const Segments& segments, bool causal, int64_t window) {
  return mix_packed(qkv, aft_dense_bias(w, segments, window), segments, causal);
}

Var aft_conv_bias(const Var& taps, const Segments& segments, bool causal) {
  const int64_t batch = segments.batch(), length = segments.length(), heads = taps.dim(0), count = taps.dim(1);
  const int64_t centre = causal ? 0 : count / 2;
  // A tap of zero after the real ones serves every lag outside the window.
  const Var with_zero = concatenate({taps, Var(Array::zeros(Shape{heads, 1}))}, 1);
  Ids tap_of(Shape{batch, length, length});
  int32_t* tap = tap_of.mutable_data();
  for (int64_t b = 0; b < batch; ++b) {
    const int32_t* const position = segments.positions().data() + b * length;
    for (int64_t t = 0; t < length; ++t) {
      for (int64_t s = 0; s < length; ++s) {
        const int64_t index = position[t] - position[s] + centre;
        *tap++ = static_cast<int32_t>(index >= 0 && index < count ? index : count);
      }
    }
  }
  return transpose(gather(with_zero, tap_of, 1), {1, 0, 2, 3});
}

Var aft_conv_composed(const Var& qkv, const Var& taps, const Segments& segments, bool causal) {
  const int64_t heads = taps.dim(0), width = (qkv.dim(2) - heads) / 2;
  Ids head_of(Shape{width});
  for (int64_t c = 0; c < width; ++c) head_of.mutable_data()[c] = static_cast<int32_t>(c * heads / width);
  const Var w = gather(transpose(aft_conv_bias(taps, segments, causal), {0, 2, 3, 1}), head_of, 3);
  const std::vector<Var> parts = split(qkv, 2, {width, heads, width});
  return mix(parts[0], gather(parts[1], head_of, 2), parts[2], w, segments, causal);
}

}  // namespace capstan::CAPSTAN_PRECISION
