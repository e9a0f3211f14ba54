// Attention of every query on the keys it may see, with any of three kernels: the op behind the Transformer baseline
// and the quadratic parts of GAU and FLASH. Nothing of size T x T is stored.
#pragma once

#include "core/array/segments.hpp"
#include "core/autograd/tape.hpp"
#include "core/kernels/mixing/attention_kernel.hpp"

namespace capstan::CAPSTAN_PRECISION {

struct AttentionOptions {
  AttentionKernel kernel = AttentionKernel::softmax;
  int64_t heads = 1;
  bool causal = false;
  /// > 0: a query sees only the keys of its own chunk of that many positions; chunks start at a document's position 0.
  int64_t chunk = 0;
  /// logits_ij = scale * row_scale_i * (q_i . k_j) + b_(i-j)
  double scale = 1;
  Array row_scale = {};     // (B, T), constant; empty: 1
  Array output_scale = {};  // (B, T), constant factor of each query's output; empty: 1
};

/// O_i = output_scale_i * sum over visible j of f(logits_ij) v_j, for each head.  f: softmax e^logit, normalised over
/// the visible keys (Vaswani et al. 2017, arXiv 1706.03762); squared_relu max(0, logit)^2 (Hua et al. 2022, arXiv
/// 2202.10447); laplace (1 + erf((logit - mean) / (deviation sqrt 2))) / 2, an invisible key counting 0 (Ma et al.
/// 2022, arXiv 2209.10655).
/// q, k: (B, T, H Z), v: (B, T, H E) -> (B, T, H E).  bias: undefined, or (H, 2N - 1) with b_(i-j) = bias[h, N - 1 + i
/// - j] and N >= the longest document (or chunk, where that is shorter). A query that sees nothing gives 0 and gets no
/// gradient.
Var attention(const Var& q, const Var& k, const Var& v, const Var& bias, const Segments& segments,
              const AttentionOptions& options);

/// The same for the packed projection q|k|v: (B, T, 3D) -> (B, T, D), without a bias. One gradient of the packed shape.
Var attention_packed(const Var& qkv, const Segments& segments, const AttentionOptions& options);

/// Number of keys each token sees, (B, T); 0 for padding.
Array visible_counts(const Segments& segments, bool causal, int64_t chunk = 0);

/// Length of the square tiles, for tests; 0 = chosen by the op.
void set_attention_tile(int64_t length);

}  // namespace capstan::CAPSTAN_PRECISION
