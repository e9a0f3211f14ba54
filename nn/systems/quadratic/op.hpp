// Attention of every query on the keys it may see, with any of three kernels: the op of the Transformer baseline
// and the quadratic parts of GAU and FLASH. Nothing of size T x T is stored. tests/nn/systems/quadratic/test_op.cpp
// holds the fused op to the composed one.
#pragma once

#include "core/array/segments.hpp"
#include "core/autograd/tape.hpp"
#include "nn/systems/quadratic/options.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// O_i = output_scale_i * sum over visible j of f(logits_ij) v_j, for each head.  f: softmax e^logit, normalised over
/// the visible keys (Vaswani et al. 2017, arXiv 1706.03762); squared_relu max(0, logit)^2 (Hua et al. 2022, arXiv
/// 2202.10447); laplace (1 + erf((logit - mean) / (deviation sqrt 2))) / 2, an invisible key counting 0
/// (Ma et al. 2022, arXiv 2209.10655).
/// q, k: (B, T, H Z), v: (B, T, H E) -> (B, T, H E).  bias: undefined, or (H, 2N - 1) with b_(i-j) = bias[h, N - 1 + i
/// - j] and N >= the longest document (or chunk, where that is shorter).
/// A query that sees nothing gives 0 and gets no gradient. Saves q, k, v and, for the softmax, the output and two
/// values per head and query. Throws std::invalid_argument naming the shapes.
Var attention(const Var& q, const Var& k, const Var& v, const Var& bias, const Segments& segments,
              const AttentionOptions& options);

/// Attention of the packed projection q|k|v: (B, T, 3D) -> (B, T, D), without a bias. One gradient of the packed shape.
Var attention_packed(const Var& qkv, const Segments& segments, const AttentionOptions& options);

/// attention() of the next T tokens of B sequences, whose chunks (or, without chunks, documents) began `past` tokens
/// earlier. q: T rows a sequence, each at its place in a row of `q_stride` elements; k, v: `key_rows` rows a sequence,
/// of which the first past + T are seen. bias: as there, with N >= the longest chunk or document; empty: none. -> (B,
/// T, H E). Records nothing.
struct AttentionPast {
  int64_t batch, length, past, key_rows;
  const real* q;
  int64_t q_stride;
  const Array &k, &v;  // (B, key_rows, H Z), (B, key_rows, H E)
  Array bias = {};
};
Array attention_continue(const AttentionPast& in, const AttentionOptions& options);

/// Number of keys each token sees, (B, T); 0 for padding. `past`: tokens in front of the first of each document.
Array visible_counts(const Segments& segments, bool causal, int64_t chunk = 0, int64_t past = 0);

}  // namespace capstan::CAPSTAN_PRECISION
