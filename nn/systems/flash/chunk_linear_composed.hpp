// The linear part of mixed chunk attention as a composition of primitives: the definition, not optimised. B x T x T
// elements; for tests and for readers. The arguments are those of the op in chunk_linear.hpp.
#pragma once

#include "nn/systems/flash/chunk_linear.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// O_i = sum_j w_ij (q_i . k_j) v_j, w_ij = 1 / n_i where i sees j and else 0.
Var chunk_linear_attention_composed(const Var& q, const Var& k, const Var& v, const Segments& segments,
                                    const ChunkLinearOptions& options);

}  // namespace capstan::CAPSTAN_PRECISION
