#include "core/ops_fastformer_composed.hpp"

#include <cmath>

#include "core/ops_aft_composed.hpp"
#include "core/ops_linear.hpp"
#include "core/ops_math.hpp"
#include "core/ops_matmul.hpp"
#include "core/ops_shape.hpp"
#include "core/ops_softmax.hpp"

CAPSTAN_BEGIN
namespace {

/// The weighted average of `values` (B, T, D) that every token sees, with weights softmax(logits), (B, T, H).
Var pool(const Var& values, const Var& logits, const Array& visible) {
  const int64_t batch = values.dim(0), length = values.dim(1), width = values.dim(2), heads = logits.dim(2);
  const Var per_query = broadcast_to(reshape(transpose(logits, {0, 2, 1}), {batch, heads, 1, length}),
                                     Shape{batch, heads, length, length});
  const Var weights = softmax(per_query, visible.reshape(Shape{batch, 1, length, length}));
  const Var by_head = transpose(reshape(values, {batch, length, heads, width / heads}), {0, 2, 1, 3});
  return reshape(transpose(matmul(weights, by_head), {0, 2, 1, 3}), {batch, length, width});
}

}  // namespace

Var fastformer_composed(const Var& qk, const FastformerWeights& weights, const Segments& segments, bool causal) {
  const int64_t width = qk.dim(2) / 2, heads = weights.query_logits.dim(0);
  const double scale = std::sqrt(static_cast<double>(heads) / static_cast<double>(width));
  const Array visible = visibility(segments, causal);
  const std::vector<Var> parts = split(qk, 2, {width, width});
  const Var &q = parts[0], &k = parts[1];
  const Var query = pool(q, linear(q, weights.query_logits, weights.query_logit_bias) * scale, visible);
  const Var p = query * k;
  const Var key = pool(p, linear(p, weights.key_logits, weights.key_logit_bias) * scale, visible);
  const Var y = linear(key * q, weights.to_r, weights.to_r_bias) + q;
  Array valid(Shape{segments.batch(), segments.length(), 1});
  for (int64_t i = 0; i < valid.size(); ++i) valid.mutable_data()[i] = segments.ids()[i] != 0 ? 1 : 0;
  return y * Var(valid);
}

CAPSTAN_END
