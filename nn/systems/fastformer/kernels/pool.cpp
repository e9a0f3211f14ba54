// The pools of Fastformer over one document. The causal pool is a moving average with gates, its pullback a scan from
// the last token; the bidirectional pool is a softmax over all tokens. tests/nn/systems/fastformer/test_op.cpp.
#include "nn/systems/fastformer/kernels/pool.hpp"

#include <algorithm>
#include <limits>

#include "core/kernels/gate_recurrence.hpp"
#include "core/kernels/simd_sums.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {
namespace {

using simd::Batch;

/// The softmax of each head's logits over all tokens, in place.
void softmax_over_time(real* logits, int64_t length, int64_t heads) {
  simd::sweep(heads, [&](auto at) {
    Batch maximum(std::numeric_limits<real>::lowest());
    for (int64_t t = 0; t < length; ++t) maximum = xsimd::max(maximum, at.load(logits + t * heads));
    Batch total(0);
    for (int64_t t = 0; t < length; ++t) {
      const Batch e = simd::exp(at.load(logits + t * heads) - maximum);
      total = total + e;
      at.store(logits + t * heads, e);
    }
    for (int64_t t = 0; t < length; ++t) at.store(logits + t * heads, at.load(logits + t * heads) / total);
  });
}

/// Calls body(piece, index of the piece, weight of the piece's head at token t) for every piece.
template <class Body>
void for_pieces(const Pool& pool, int64_t t, const Body& body) {
  for (int64_t i = 0; i < pool.count; ++i) body(pool.pieces[i], i, pool.weights[t * pool.heads + pool.pieces[i].head]);
}

/// The first channel of the piece at token t.
const real* row(const PoolRows& rows, int64_t t, const PoolPiece& piece) {
  return rows.data + t * rows.stride + piece.begin;
}
real* row(const MutablePoolRows& rows, int64_t t, const PoolPiece& piece) {
  return rows.data + t * rows.stride + piece.begin;
}

/// Causal: `average` of one piece goes from R_{t-1} to R_t = R_{t-1} + weight (values_t - R_{t-1}).
void advance(const Pool& pool, int64_t t, const PoolPiece& piece, real weight, real* average) {
  const real* const v = row(pool.values, t, piece);
  simd::sweep(piece.count, [&](auto at) {
    const Batch r = at.load(average);
    at.store(average, r + Batch(weight) * (at.load(v) - r));
  });
}

/// Bidirectional: adds token t's share, weight * values_t, to the average over the whole document.
void accumulate(const Pool& pool, int64_t t, const PoolPiece& piece, real weight, real* average) {
  const real* const v = row(pool.values, t, piece);
  simd::sweep(piece.count, [&](auto at) { at.store(average, at.load(average) + Batch(weight) * at.load(v)); });
}

void apply(const Pool& pool, int64_t t, const PoolPiece& piece, const real* average, const MutablePoolRows& out) {
  const real* const other = row(pool.others, t, piece);
  real* const y = row(out, t, piece);
  simd::sweep(piece.count, [&](auto at) { at.store(y, at.load(average) * at.load(other)); });
}

/// One number per channel of the pieces of a Pool, starting at 0. buffer(piece) is the address of the piece's first.
class PieceBuffer {
 public:
  explicit PieceBuffer(const Pool& pool) : first_(pool.pieces[0].begin) { std::fill_n(data_, pool_channels, real{0}); }
  real* operator()(const PoolPiece& piece) { return data_ + piece.begin - first_; }

 private:
  int64_t first_;
  alignas(64) real data_[pool_channels];
};

/// Token t of the product R_t others_t, with R_t in `average`: writes or adds the gradient of `others`, and overwrites
/// dout_t with P_t = dout_t others_t.
void multiply_grads(const Pool& pool, const PoolGradients& out, int64_t t, const PoolPiece& piece,
                    const real* average) {
  real *const g = row(out.dout, t, piece), *const dother = row(out.others, t, piece);
  const real* const other = row(pool.others, t, piece);
  simd::sweep(piece.count, [&](auto at) {
    const Batch dy = at.load(g), mine = dy * at.load(average);
    at.store(dother, out.add_others ? at.load(dother) + mine : mine);
    at.store(g, dy * at.load(other));
  });
}

/// dvalues_t = weight * grad, added to out.add_values where there is one, else written over dout_t.
void store_values(const PoolGradients& out, int64_t t, const PoolPiece& piece, real weight, const real* grad) {
  const bool add = out.add_values.data != nullptr;
  real* const dvalue = row(add ? out.add_values : out.dout, t, piece);
  simd::sweep(piece.count, [&](auto at) {
    const Batch mine = Batch(weight) * at.load(grad);
    at.store(dvalue, add ? at.load(dvalue) + mine : mine);
  });
}

/// The causal pullback: R_t and the products P_t R_t from the first token on, then gradients from the last token back.
void scan_backward(const Pool& pool, const PoolGradients& out) {
  PieceBuffer average(pool), b(pool);
  const auto dlogit = [&](int64_t t, int64_t i) -> real& { return out.logits[i * out.logit_stride + t]; };
  for (int64_t t = 0; t < pool.length; ++t)
    for_pieces(pool, t, [&](const PoolPiece& piece, int64_t i, real weight) {
      advance(pool, t, piece, weight, average(piece));
      multiply_grads(pool, out, t, piece, average(piece));
      dlogit(t, i) = simd::dot(row(out.dout, t, piece), average(piece), piece.count);  // P_t R_t, for the next loop
    });
  real c[pool_channels] = {};  // per piece, (1 - w) C of token t + 1; `b` has (1 - w) B
  for (int64_t t = pool.length - 1; t >= 0; --t)
    for_pieces(pool, t, [&](const PoolPiece& piece, int64_t i, real weight) {
      real* const sum = b(piece);
      const real* const p = row(out.dout, t, piece);
      simd::sweep(piece.count, [&](auto at) { at.store(sum, at.load(p) + at.load(sum)); });
      c[i] += dlogit(t, i);
      dlogit(t, i) = weight * (simd::dot(row(pool.values, t, piece), sum, piece.count) - c[i]);
      store_values(out, t, piece, weight, sum);
      c[i] *= 1 - weight;
      simd::sweep(piece.count, [&](auto at) { at.store(sum, Batch(1 - weight) * at.load(sum)); });
    });
}

/// The bidirectional pullback: three passes, for R, for the sum of all P_t, and for the gradients.
void whole_backward(const Pool& pool, const PoolGradients& out) {
  PieceBuffer average(pool), total(pool);
  for (int64_t t = 0; t < pool.length; ++t)
    for_pieces(pool, t, [&](const PoolPiece& piece, int64_t, real weight) {
      accumulate(pool, t, piece, weight, average(piece));
    });
  for (int64_t t = 0; t < pool.length; ++t)
    for_pieces(pool, t, [&](const PoolPiece& piece, int64_t, real) {
      multiply_grads(pool, out, t, piece, average(piece));
      const real* const p = row(out.dout, t, piece);
      real* const sum = total(piece);
      simd::sweep(piece.count, [&](auto at) { at.store(sum, at.load(sum) + at.load(p)); });
    });
  for (int64_t t = 0; t < pool.length; ++t)
    for_pieces(pool, t, [&](const PoolPiece& piece, int64_t i, real weight) {
      const real *const v = row(pool.values, t, piece), *const r = average(piece), *const s = total(piece);
      simd::Sum sum;
      simd::sweep_sums(piece.count,
                       [&](auto at) { sum[at] = simd::fma(at.load(s), at.load(v) - at.load(r), sum[at]); });
      out.logits[i * out.logit_stride + t] = weight * sum.total();
      store_values(out, t, piece, weight, s);
    });
}

}  // namespace

void pool_weights(real* logits, int64_t length, int64_t heads, bool causal, const PoolState& state) {
  if (!causal) return softmax_over_time(logits, length, heads);
  simd::sweep_groups<1>(heads, [&](auto group) {
    GateRecurrence<decltype(group)> gates(group, state.maximum, state.weight);
    const auto& at = group.places[0];
    for (int64_t t = 0; t < length; ++t) at.store(logits + t * heads, gates.advance(0, at.load(logits + t * heads)));
    gates.store();
  });
}

void pool_product(const Pool& pool, real* average, const MutablePoolRows& out) {
  if (!pool.causal) {
    for (int64_t i = 0; i < pool.count; ++i) std::fill_n(average + pool.pieces[i].begin, pool.pieces[i].count, real{0});
    for (int64_t t = 0; t < pool.length; ++t)
      for_pieces(pool, t, [&](const PoolPiece& piece, int64_t, real weight) {
        accumulate(pool, t, piece, weight, average + piece.begin);
      });
  }
  for (int64_t t = 0; t < pool.length; ++t)
    for_pieces(pool, t, [&](const PoolPiece& piece, int64_t, real weight) {
      if (pool.causal) advance(pool, t, piece, weight, average + piece.begin);
      apply(pool, t, piece, average + piece.begin, out);
    });
}

void pool_product_backward(const Pool& pool, const PoolGradients& out) {
  pool.causal ? scan_backward(pool, out) : whole_backward(pool, out);
}

}  // namespace capstan::CAPSTAN_PRECISION::kernels
