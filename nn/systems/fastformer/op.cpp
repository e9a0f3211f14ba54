// Two pools after each other, each in two steps: weights from one product of all tokens (weights_of), then the pool
// times another part of the token (multiply_pool), documents and units of channels side by side. The second pool is
// written over the first one's result. The pullback computes p and u again from the saved weights, then goes through
// both pools backwards (pull). Sums over pieces of channels are added in their order: the number of threads changes no
// bit.
#include "nn/systems/fastformer/op.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/array/segments.hpp"
#include "core/array/visibility.hpp"
#include "core/autograd/grad_sink.hpp"
#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "core/fused/linear_products.hpp"
#include "core/kernels/column_sums.hpp"
#include "core/kernels/elementwise.hpp"
#include "core/machine/parallel.hpp"
#include "core/machine/profile.hpp"
#include "core/products/gemm.hpp"
#include "nn/systems/fastformer/kernels/pool.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

using kernels::MutablePoolRows;
using kernels::PoolPiece;
using kernels::PoolRows;

/// Shapes, and how a token's channels are cut for the threads: heads into pieces, pieces into units of work.
struct Layout {
  Layout(const Segments& segments_, const Array& packed, int64_t heads_, int64_t width_, bool causal_)
      : segments(segments_), width(width_), stride(packed.dim(2)), heads(heads_), causal(causal_) {
    const int64_t head_width = width / heads;
    int64_t in_unit = kernels::pool_channels;
    for (int64_t head = 0; head < heads; ++head)
      for (int64_t c = 0; c < head_width; c += kernels::pool_channels) {
        const int64_t count = std::min(kernels::pool_channels, head_width - c);
        if (in_unit + count > kernels::pool_channels) {
          units.push_back(static_cast<int64_t>(pieces.size()));
          in_unit = 0;
        }
        pieces.push_back({head, head * head_width + c, count});
        in_unit += count;
      }
    units.push_back(static_cast<int64_t>(pieces.size()));
  }
  int64_t tokens() const { return segments.ids().size(); }
  int64_t first_token(const Segments::Span& span) const { return span.row * segments.length() + span.begin; }
  int64_t spans() const { return static_cast<int64_t>(segments.spans().size()); }
  /// The factor of the logits, sqrt(heads / width).
  real scale() const { return static_cast<real>(std::sqrt(static_cast<double>(heads) / static_cast<double>(width))); }

  Segments segments;
  int64_t width, stride;  // stride: of the packed rows, 2 or 3 widths
  int64_t heads;
  bool causal;
  bool apart = false;  // each row's logits are a product of their own, so that their bits do not depend on the others
  std::vector<PoolPiece> pieces;
  std::vector<int64_t> units;  // first piece of every unit, and the number of pieces
};

/// One of the two pools: weights (B, T, H), and the (tokens, D) rows that it pools and multiplies.
struct PoolSide {
  const real* weights;
  PoolRows values, others;
};

/// body(first token, index of the document, first piece, pool) for every document and unit of channels; these do not
/// depend on each other.
template <class Body>
void for_each_unit(const Layout& layout, const PoolSide& side, const Body& body) {
  const int64_t units = static_cast<int64_t>(layout.units.size()) - 1;
  parallel_units(layout.spans() * units, [&](int64_t index) {
    const int64_t span_index = index / units, first = layout.units[static_cast<size_t>(index % units)],
                  last = layout.units[static_cast<size_t>(index % units) + 1];
    const Segments::Span& span = layout.segments.spans()[static_cast<size_t>(span_index)];
    const int64_t token = layout.first_token(span);
    const auto at = [&](const PoolRows& rows) { return PoolRows{rows.data + token * rows.stride, rows.stride}; };
    const kernels::Pool pool{
        side.weights + token * layout.heads, span.length(), layout.heads, at(side.values), at(side.others),
        layout.pieces.data() + first,        last - first,  layout.causal};
    body(token, span_index, first, pool);
  });
}

MutablePoolRows rows_from(const MutablePoolRows& rows, int64_t token) {
  return {rows.data == nullptr ? nullptr : rows.data + token * rows.stride, rows.stride};
}

/// softmax weights (B, T, H) of s rows weight^T, 0 at padding.
Array weights_of(const Layout& layout, const PoolRows& rows, const Var& weight, AdditivePoolState& state) {
  const int64_t heads = layout.heads, tokens = layout.tokens();
  Array logits(Shape{layout.segments.batch(), layout.segments.length(), heads});
  real* const out = logits.mutable_data();
  const int64_t products = layout.apart ? layout.segments.batch() : 1, count = tokens / std::max<int64_t>(products, 1);
  for (int64_t first = 0; first < tokens; first += count)
    gemm(count, heads, layout.width, {rows.data + first * rows.stride, rows.stride},
         {weight.value().data(), layout.width, Transpose::yes}, out + first * heads, heads, layout.scale(), 0);
  real *const maximum = state.maximum.mutable_data(), *const sums = state.weight.mutable_data();
  parallel_units(layout.spans(), [&](int64_t index) {
    const Segments::Span& span = layout.segments.spans()[static_cast<size_t>(index)];
    kernels::pool_weights(out + layout.first_token(span) * heads, span.length(), heads, layout.causal,
                          {maximum + index * heads, sums + index * heads});
  });
  clear_padding(out, heads, layout.segments);
  return logits;
}

/// pool * others, a row per token; 0 at padding.
void multiply_pool(const Layout& layout, const PoolSide& side, AdditivePoolState& state, real* out) {
  real* const average = state.average.mutable_data();
  for_each_unit(layout, side, [&](int64_t token, int64_t span, int64_t, const kernels::Pool& pool) {
    kernels::pool_product(pool, average + span * layout.width, {out + token * layout.width, layout.width});
  });
  clear_padding(out, layout.width, layout.segments);
}

PoolRows query_rows(const Layout& layout, const Array& packed) { return {packed.data(), layout.stride}; }
PoolRows key_rows(const Layout& layout, const Array& packed) { return {packed.data() + layout.width, layout.stride}; }
/// The last part: the values, or the queries that they share.
bool own_values(const Layout& layout) { return layout.stride == 3 * layout.width; }
PoolRows value_rows(const Layout& layout, const Array& packed) {
  return {packed.data() + (own_values(layout) ? 2 * layout.width : 0), layout.stride};
}

/// The weights of both pools.
struct Saved {
  Array query, key;
};

/// The product p of the keys and the pooled queries, from the query pool's weights.
Array multiplied_keys(const Layout& layout, const Array& qk, const Array& weights, AdditivePoolState& state) {
  Array p(Shape{layout.segments.batch(), layout.segments.length(), layout.width});
  multiply_pool(layout, {weights.data(), query_rows(layout, qk), key_rows(layout, qk)}, state, p.mutable_data());
  return p;
}

/// Returns u, and in `saved` what the pullback needs.
Array pools(const Layout& layout, const Array& qk, const FastformerWeights& weights, FastformerState& state,
            Saved* saved) {
  const int64_t width = layout.width;
  const PoolRows q = query_rows(layout, qk);
  const Array query = weights_of(layout, q, weights.query_logits, state.query);
  Array u = multiplied_keys(layout, qk, query, state.query);
  real* const rows = u.mutable_data();
  const Array key = weights_of(layout, {rows, width}, weights.key_logits, state.key);
  multiply_pool(layout, {key.data(), {rows, width}, value_rows(layout, qk)}, state.key, rows);  // u over p
  if (saved != nullptr) *saved = {query, key};
  return u;
}

/// W_r u + b_r + q
Array finished(const Layout& layout, const Array& qk, const FastformerWeights& weights, const Array& u) {
  const int64_t width = layout.width;
  const PoolRows q = query_rows(layout, qk);
  Array y(u.shape());
  real* const out = y.mutable_data();
  const real* const bias = weights.to_r_bias ? weights.to_r_bias.value().data() : nullptr;
  kernels::for_rows(layout.tokens(), width, [&](int64_t token) {
    for (int64_t c = 0; c < width; ++c)
      out[token * width + c] = q.data[token * q.stride + c] + (bias != nullptr ? bias[c] : 0);
  });
  const Factor w(weights.to_r);
  add_rows(Factor(u, w), w, out, {layout.tokens(), width, width});
  clear_padding(out, width, layout.segments);
  return y;
}

/// The gradient of one pool and of its logits. `out` as PoolGradients; returns s dlogits, (B, T, H), 0 at padding.
Array pull_pool(const Layout& layout, const PoolSide& side, const kernels::PoolGradients& whole) {
  const int64_t tokens = layout.tokens(), heads = layout.heads;
  Array by_piece(Shape{static_cast<int64_t>(layout.pieces.size()), tokens});
  real* const partial = by_piece.mutable_data();
  for_each_unit(layout, side, [&](int64_t token, int64_t, int64_t first, const kernels::Pool& pool) {
    kernels::PoolGradients out = whole;
    out.dout = rows_from(whole.dout, token);
    out.others = rows_from(whole.others, token);
    out.add_values = rows_from(whole.add_values, token);
    out.logits = partial + first * tokens + token;
    out.logit_stride = tokens;
    kernels::pool_product_backward(pool, out);
  });
  Array dlogits = Array::zeros(Shape{layout.segments.batch(), layout.segments.length(), heads});
  real* const out = dlogits.mutable_data();
  for (size_t i = 0; i < layout.pieces.size(); ++i) {
    const real* const from = partial + static_cast<int64_t>(i) * tokens;
    for (const Segments::Span& span : layout.segments.spans())
      for (int64_t t = layout.first_token(span); t < layout.first_token(span) + span.length(); ++t)
        out[t * heads + layout.pieces[i].head] += layout.scale() * from[t];
  }
  return dlogits;
}

/// Gradients of logits = rows weight^T: of the weight, and added to that of the rows.
void pull_logits(const Layout& layout, const Array& dlogits, const PoolRows& rows, const Array& weight,
                 const MutablePoolRows& drows, GradSink& dweight) {
  const int64_t width = layout.width, heads = layout.heads, tokens = layout.tokens();
  gemm(tokens, width, heads, {dlogits.data(), heads}, {weight.data(), width}, drows.data, drows.stride, 1, 1);
  if (dweight)
    gemm(heads, width, tokens, {dlogits.data(), heads, Transpose::yes}, {rows.data, rows.stride}, dweight.data(), width,
         1, dweight.beta());
}

enum Input : size_t { packed, query_logits, key_logits, to_r, to_r_bias };

/// dy with zeros at padding, where y is a constant.
Array visible_rows(Array dy, const Layout& layout) {
  if (layout.segments.all_valid()) return dy;
  Array visible = dy.unique() ? std::move(dy) : dy.clone();
  clear_padding(visible.mutable_data(), layout.width, layout.segments);
  return visible;
}

Grads pull(const Layout& layout, const Array& qk, const FastformerWeights& weights, const Saved& saved, Array dy_rows,
           const Needs& needs) {
  const int64_t width = layout.width, tokens = layout.tokens();
  const Array dy = visible_rows(std::move(dy_rows), layout);
  const PoolRows q = query_rows(layout, qk), k = key_rows(layout, qk);
  const LinearSizes sizes{tokens, width, width};
  Grads grads(5);
  const Factor w(weights.to_r), d(dy, w);
  FastformerState state(layout.spans(), layout.heads, width);
  const Array p = multiplied_keys(layout, qk, saved.query, state.query);
  const PoolSide query_pool{saved.query.data(), q, k},
      key_pool{saved.key.data(), {p.data(), width}, value_rows(layout, qk)};
  if (needs[to_r]) {
    Array u(p.shape());
    multiply_pool(layout, key_pool, state.key, u.mutable_data());
    grads[to_r] = weight_grad(d, Factor(u, w), sizes, needs, to_r);
  }
  GradSink dto_r_bias(needs, to_r_bias, Shape{width});
  kernels::column_sums(dy.data(), {dto_r_bias.data(), dto_r_bias.beta()}, tokens, width);
  grads[to_r_bias] = dto_r_bias.grad();

  Array dqk(qk.shape());
  real* const dqk_data = dqk.mutable_data();
  const MutablePoolRows dq{dqk_data, layout.stride}, dk{dqk_data + width, layout.stride},
      dv{dqk_data + 2 * width, layout.stride};
  kernels::for_rows(tokens, width,
                    [&](int64_t token) { std::copy_n(dy.data() + token * width, width, dq.data + token * dq.stride); });
  Array du = input_grad(d, w, dy.shape(), sizes);
  const MutablePoolRows dp{du.mutable_data(), width};  // dp is written over du

  const Shape logits{layout.heads, width};
  GradSink dkey(needs, key_logits, logits), dquery(needs, query_logits, logits);
  const bool has_values = own_values(layout);
  const Array db = pull_pool(layout, key_pool, {dp, has_values ? dv : dq, /*add_others=*/!has_values, {}, nullptr, 0});
  pull_logits(layout, db, key_pool.values, weights.key_logits.value(), dp, dkey);
  const Array da = pull_pool(layout, query_pool, {dp, dk, /*add_others=*/false, dq, nullptr, 0});
  pull_logits(layout, da, q, weights.query_logits.value(), dq, dquery);
  clear_padding(dqk_data, layout.stride, layout.segments);
  grads[packed] = dqk;
  grads[query_logits] = dquery.grad();
  grads[key_logits] = dkey.grad();
  return grads;
}

/// Throws std::invalid_argument unless the operands fit each other.
void check_inputs(const Shape& qk, const FastformerWeights& weights) {
  const Shape& logits = weights.query_logits.shape();
  check(logits.rank() == 2, "fastformer: query_logits {} is not (H, D)", logits);
  const int64_t width = logits[1];
  check(qk.rank() == 3 && (qk[2] == 2 * width || qk[2] == 3 * width),
        "fastformer: qk {} is neither (B, T, {}) nor, with values, (B, T, {})", qk, 2 * width, 3 * width);
  check(logits[0] > 0 && width % logits[0] == 0 && weights.key_logits.shape() == logits,
        "fastformer: query_logits {} and key_logits {} are not both (H, {}) with H dividing {}", logits,
        weights.key_logits.shape(), width, width);
  check(weights.to_r.shape() == Shape{width, width}, "fastformer: to_r {} is not ({}, {})", weights.to_r.shape(), width,
        width);
  check(!weights.to_r_bias || weights.to_r_bias.shape() == Shape{width}, "fastformer: the bias of to_r {} is not ({})",
        weights.to_r_bias ? weights.to_r_bias.shape() : Shape{}, width);
}

/// The layout of the next tokens of `state`.
Layout next_tokens(const Array& qk, const FastformerWeights& weights, const FastformerState& state) {
  check_inputs(qk.shape(), weights);
  const int64_t width = weights.query_logits.dim(1), heads = weights.query_logits.dim(0);
  const auto fits = [&](const Array& part, int64_t columns) {
    return part.rank() == 2 && part.dim(0) >= qk.dim(0) && part.dim(1) == columns;
  };
  check(fits(state.query.maximum, heads) && fits(state.query.average, width),
        "fastformer: a state of {} heads and {} channels does not fit qk {}", state.query.maximum.shape(),
        state.query.average.shape(), qk.shape());
  Layout layout(Segments::full(qk.dim(0), qk.dim(1)), qk, heads, width, true);
  layout.apart = true;
  return layout;
}

}  // namespace

FastformerState::FastformerState(int64_t batch, int64_t heads, int64_t width) {
  for (AdditivePoolState* pool : {&query, &key})
    *pool = {Array(Shape{batch, heads}), Array(Shape{batch, heads}), Array(Shape{batch, width})};
  reset();
}

void FastformerState::reset() {
  for (AdditivePoolState* pool : {&query, &key}) {
    kernels::fill(pool->maximum.mutable_data(), pool->maximum.size(), std::numeric_limits<real>::lowest());
    kernels::fill(pool->weight.mutable_data(), pool->weight.size(), real{0});
    kernels::fill(pool->average.mutable_data(), pool->average.size(), real{0});
  }
}

FastformerState FastformerState::clone() const {
  FastformerState copied = *this;
  for (AdditivePoolState* pool : {&copied.query, &copied.key})
    *pool = {pool->maximum.clone(), pool->weight.clone(), pool->average.clone()};
  return copied;
}

Var fastformer(const Var& qk, const FastformerWeights& weights, const Segments& segments, bool causal) {
  const ProfileSpan span;
  check_inputs(qk.shape(), weights);
  check(qk.dim(0) == segments.batch() && qk.dim(1) == segments.length(),
        "fastformer: qk {} does not have the (B, T) of segments {}", qk.shape(), segments.ids().shape());
  const std::vector<Var> inputs{qk, weights.query_logits, weights.key_logits, weights.to_r, weights.to_r_bias};
  const Layout layout(segments, qk.value(), weights.query_logits.dim(0), weights.query_logits.dim(1), causal);
  FastformerState state(layout.spans(), layout.heads, layout.width);
  Saved saved;
  const Array u = pools(layout, qk.value(), weights, state, recording(inputs) ? &saved : nullptr);
  Array y = finished(layout, qk.value(), weights, u);
  return make_var("fastformer", std::move(y), inputs,
                  [layout, x = qk.value(), weights, saved](Array dy, const Needs& needs) {
                    return pull(layout, x, weights, saved, std::move(dy), needs);
                  });
}

Array fastformer_pools(const Array& qk, const FastformerWeights& weights, FastformerState& state) {
  return pools(next_tokens(qk, weights, state), qk, weights, state, nullptr);
}

Array fastformer_continue(const Array& qk, const FastformerWeights& weights, FastformerState& state) {
  const Layout layout = next_tokens(qk, weights, state);
  return finished(layout, qk, weights, pools(layout, qk, weights, state, nullptr));
}

}  // namespace capstan::CAPSTAN_PRECISION
