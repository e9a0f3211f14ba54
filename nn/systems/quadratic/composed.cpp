// The definition of attention(), to which tests/nn/systems/quadratic/test_op.cpp holds the fused op.
#include "nn/systems/quadratic/composed.hpp"

#include <algorithm>
#include <cmath>

#include "core/array/segments.hpp"
#include "core/array/visibility.hpp"
#include "core/ops/ops.hpp"
#include "nn/systems/quadratic/op.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// 1 where the query (row) sees the key (column), else 0: (B, T, T).
Array visible_keys(const Segments& segments, const AttentionOptions& options) {
  Array mask = visibility(segments, options.causal);
  if (options.chunk == 0) return mask;
  const int64_t batch = segments.batch(), length = segments.length();
  real* visible = mask.mutable_data();
  for (int64_t b = 0; b < batch; ++b) {
    const int32_t* const position = segments.positions().data() + b * length;
    for (int64_t i = 0; i < length; ++i)
      for (int64_t j = 0; j < length; ++j, ++visible)
        if (position[i] / options.chunk != position[j] / options.chunk) *visible = 0;
  }
  return mask;
}

/// b_(i-j) for every pair, (B, H, T, T); where the key is not visible, some other entry of b.
Var bias_matrix(const Var& bias, const Segments& segments) {
  const int64_t batch = segments.batch(), length = segments.length(), last = bias.dim(1) - 1;
  Ids lag(Shape{batch, length, length});
  int32_t* out = lag.mutable_data();
  for (int64_t b = 0; b < batch; ++b) {
    const int32_t* const position = segments.positions().data() + b * length;
    for (int64_t i = 0; i < length; ++i)
      for (int64_t j = 0; j < length; ++j)
        *out++ = static_cast<int32_t>(std::clamp<int64_t>(last / 2 + position[i] - position[j], 0, last));
  }
  return transpose(gather(bias, lag, 1), {1, 0, 2, 3});
}

/// f(logits) of the visible pairs, 0 elsewhere.
Var weights_of(const Var& logits, const Array& mask, AttentionKernel kernel) {
  const Var zero(Array::scalar(0));
  switch (kernel) {
    case AttentionKernel::softmax:
      return softmax(logits, mask);
    case AttentionKernel::squared_relu:
      return where(mask, squared_relu(logits), zero);
    case AttentionKernel::laplace:
      return where(mask, 0.5 * (1 + erf((logits - laplace_mean) / (laplace_deviation * std::sqrt(2.0)))), zero);
  }
  throw std::logic_error("attention: unknown kernel");
}

/// (B, T, H E) -> (B, H, T, E)
Var split_heads(const Var& x, int64_t heads) {
  return transpose(reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), {0, 2, 1, 3});
}

}  // namespace

Var attention_weights(const Var& q, const Var& k, const Var& bias, const Segments& segments,
                      const AttentionOptions& options) {
  const int64_t batch = q.dim(0), length = q.dim(1), heads = options.heads;
  const auto per_query = [&](const Array& factor) { return Var(factor.reshape(Shape{batch, 1, length, 1})); };
  Var logits = options.scale * matmul(split_heads(q, heads), split_heads(k, heads), {Transpose::no, Transpose::yes});
  if (!options.row_scale.empty()) logits = logits * per_query(options.row_scale);
  if (bias) logits = logits + bias_matrix(bias, segments);
  const Array mask = visible_keys(segments, options).reshape(Shape{batch, 1, length, length});
  Var weights = weights_of(logits, mask, options.kernel);
  return options.output_scale.empty() ? weights : weights * per_query(options.output_scale);
}

Var attention_composed(const Var& q, const Var& k, const Var& v, const Var& bias, const Segments& segments,
                       const AttentionOptions& options) {
  const Var output = matmul(attention_weights(q, k, bias, segments, options), split_heads(v, options.heads));
  return reshape(transpose(output, {0, 2, 1, 3}), {v.dim(0), v.dim(1), v.dim(2)});
}

}  // namespace capstan::CAPSTAN_PRECISION
