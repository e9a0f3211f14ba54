// Fastformer's additive attention: the fused op. Wu et al. 2021, arXiv 2108.09084.
//
// From the packed projection q|k, whose values v are the queries (the authors' code), or q|k|v (the paper), for every
// head h of D/H channels, with s = sqrt(H/D) and pool(a, x)_t = sum_i softmax_i(a) x_i over the tokens i that t sees:
//   qbar_t = pool(s q wq_h, q),   p_t = qbar_t * k_t,
//   kbar_t = pool(s p wk_h, p),   u_t = kbar_t * v_t,   y_t = W_r u_t + b_r + q_t.
// Bidirectional, both pools run over the whole document. Causal, they are prefix pools, and p_t is made with the query
// pooled so far: linear time, but not what the bidirectional layer gives for a prefix, whose p would all be made with
// the last pooled query (that costs a softmax attention, O(T^2 D)). tests/nn/systems/fastformer/test_op.cpp holds the
// fused op to its definition in composed.hpp.
#pragma once

#include "core/array/segments.hpp"
#include "core/autograd/tape.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// query_logits, key_logits: (H, D), every head's logit reads all features (biases would cancel). to_r: (D, D); its
/// bias (D) may be undefined.
struct FastformerWeights {
  Var query_logits, key_logits, to_r, to_r_bias;
};

/// qk: (B, T, 2D), or (B, T, 3D) with values of its own -> (B, T, D), 0 for padding.  O(T D) beyond the products. Saves
/// qk and the weights of both pools, 2 B T H values; the pullback computes the pools again and scans backwards without
/// exp. Throws std::invalid_argument naming the shapes.
Var fastformer(const Var& qk, const FastformerWeights& weights, const Segments& segments, bool causal);

/// What a pool remembers of B sequences: per head the running maximum m of the logits and S = sum e^(logit - m), (B,
/// H), and the average so far (B, D).
struct AdditivePoolState {
  Array maximum, weight, average;
};
/// Both pools of B sequences; reset() is the state before the first token.
struct FastformerState {
  FastformerState(int64_t batch, int64_t heads, int64_t width);
  void reset();
  /// A copy with memory of its own, so that a caller can keep what there was until all is computed.
  FastformerState clone() const;
  AdditivePoolState query, key;
};

/// The causal op for the next T tokens of the first B sequences of `state`, qk (B, T, 2D or 3D) -> (B, T, D). Records
/// nothing.
Array fastformer_continue(const Array& qk, const FastformerWeights& weights, FastformerState& state);
/// Computes up to u, (B, T, D), for callers that multiply by to_r.
Array fastformer_pools(const Array& qk, const FastformerWeights& weights, FastformerState& state);

}  // namespace capstan::CAPSTAN_PRECISION
