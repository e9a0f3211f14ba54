// Additive attention over one document, for some channels: a pool of the tokens, multiplied by another vector of each
// token. The kernels of nn/systems/fastformer/op.cpp, which calls them for both pools.
#pragma once

#include <cstdint>

#include "core/base/real.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

/// Channels [begin, begin + count) of one head, at most pool_channels of them.
struct PoolPiece {
  int64_t head, begin, count;
};
constexpr int64_t pool_channels = 64;

/// Rows of a document: the first element of its first token, and elements from token to token.
struct PoolRows {
  const real* data;
  int64_t stride;
};
struct MutablePoolRows {
  real* data;
  int64_t stride;
};

/// The running maximum of a head's logits and the sum of e^(logit - maximum), a number per head.
struct PoolState {
  real *maximum, *weight;
};

/// logits (length, heads) become the weights of the pool, in place.  Bidirectional: w_t = softmax over the document.
/// Causal: w_t = e^(logit - m) / S among the tokens so far, continuing `state`: the gate of the moving average below.
void pool_weights(real* logits, int64_t length, int64_t heads, bool causal, const PoolState& state);

/// A document's part in both passes; `weights` are (length, heads).
struct Pool {
  const real* weights;
  int64_t length, heads;
  PoolRows values, others;
  const PoolPiece* pieces;
  int64_t count;  // of pieces; their channels follow each other and number at most pool_channels
  bool causal;
};

/// out_t = R_t others_t.  Bidirectional: R = sum_t w_t values_t. Causal: R_t = R_{t-1} + w_t (values_t - R_{t-1}),
/// starting from `average`. Leaves the last R in `average`. `out` may be the values.
void pool_product(const Pool& pool, real* average, const MutablePoolRows& out);

/// Gradients of pool_product from an average of 0.  dout: (length, D), overwritten by the gradient of the values unless
/// that is to be added to `add_values`.
struct PoolGradients {
  MutablePoolRows dout;
  MutablePoolRows others;
  bool add_others;             // to what is there
  MutablePoolRows add_values;  // data null: into dout
  real* logits;                // piece i, token t at [i * logit_stride + t]: threads that share a document write apart
  int64_t logit_stride;
};

/// With P = dout others.  Causal, a reverse scan without exp: B_t = P_t + (1 - w_{t+1}) B_{t+1},
/// C_t = P_t R_t + (1 - w_{t+1}) C_{t+1},  dvalues = w B,  dlogit = w sum_channels(values B - C).  Bidirectional: with
/// B = sum_t P_t,  dvalues = w B,  dlogit = w sum_channels(B (values - R)).
void pool_product_backward(const Pool& pool, const PoolGradients& out);

}  // namespace capstan::CAPSTAN_PRECISION::kernels
