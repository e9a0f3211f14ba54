// The definition of the op in op.hpp, to which tests/nn/systems/fastformer/test_op.cpp holds the fused one.
#include "nn/systems/fastformer/composed.hpp"
#include "core/array/visibility.hpp"
#include "core/fused/linear.hpp"

#include <cmath>

#include "core/array/segments.hpp"
#include "core/ops/ops.hpp"
#include "nn/systems/fastformer/op.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// softmax over the visible tokens of the logits that `x` (B, T, D) has by `weight` (H, D): (B, H, T, T).
Var pool_weights(const Var& x, const Var& weight, const Array& visible) {
  const int64_t batch = x.dim(0), length = x.dim(1), heads = weight.dim(0);
  const Var logits = linear(x, weight) * std::sqrt(static_cast<double>(heads) / static_cast<double>(x.dim(2)));
  const Var per_query = broadcast_to(reshape(transpose(logits, {0, 2, 1}), {batch, heads, 1, length}),
                                     Shape{batch, heads, length, length});
  return softmax(per_query, visible.reshape(Shape{batch, 1, length, length}));
}

/// The average of `values` (B, T, D) that every token sees, with weights (B, H, T, T).
Var pool(const Var& values, const Var& weights) {
  const int64_t batch = values.dim(0), length = values.dim(1), width = values.dim(2), heads = weights.dim(1);
  const Var by_head = transpose(reshape(values, {batch, length, heads, width / heads}), {0, 2, 1, 3});
  return reshape(transpose(matmul(weights, by_head), {0, 2, 1, 3}), {batch, length, width});
}

/// Queries, values, the pooled keys kbar, and the weights of both pools.
struct Pools {
  Var q, v, kbar;
  FastformerPoolWeights weights;
};

Pools pools(const Var& qk, const FastformerWeights& weights, const Segments& segments, bool causal) {
  const int64_t width = weights.query_logits.dim(1);
  const Array visible = visibility(segments, causal);
  const bool has_values = qk.dim(2) == 3 * width;
  const std::vector<Var> parts =
      split(qk, 2, has_values ? std::vector<int64_t>{width, width, width} : std::vector<int64_t>{width, width});
  const Var &q = parts[0], &k = parts[1];
  const Var query = pool_weights(q, weights.query_logits, visible);
  const Var p = pool(q, query) * k;
  const Var key = pool_weights(p, weights.key_logits, visible);
  return {q, has_values ? parts[2] : q, pool(p, key), {query, key}};
}

}  // namespace

FastformerPoolWeights fastformer_pool_weights(const Var& qk, const FastformerWeights& weights, const Segments& segments,
                                              bool causal) {
  return pools(qk, weights, segments, causal).weights;
}

Var fastformer_composed(const Var& qk, const FastformerWeights& weights, const Segments& segments, bool causal) {
  const Pools made = pools(qk, weights, segments, causal);
  const Var y = linear(made.kbar * made.v, weights.to_r, weights.to_r_bias) + made.q;
  Array valid(Shape{segments.batch(), segments.length(), 1});
  for (int64_t i = 0; i < valid.size(); ++i) valid.mutable_data()[i] = segments.ids()[i] != 0 ? 1 : 0;
  return y * Var(valid);
}

}  // namespace capstan::CAPSTAN_PRECISION
