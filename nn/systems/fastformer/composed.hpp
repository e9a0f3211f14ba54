// Fastformer's additive attention as a composition of primitives: the definition, not optimised. B x T x H x T
// elements; for tests, for readers, and for reports of what a token attends to. Arguments and results are those of the
// fused op in op.hpp.
#pragma once

#include "nn/systems/fastformer/op.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// What the pools take of token i for token t, (B, H, T, T); rows sum to 1, those of padding are 0.
struct FastformerPoolWeights {
  Var query, key;
};
FastformerPoolWeights fastformer_pool_weights(const Var& qk, const FastformerWeights& weights, const Segments& segments,
                                              bool causal);

Var fastformer_composed(const Var& qk, const FastformerWeights& weights, const Segments& segments, bool causal);

}  // namespace capstan::CAPSTAN_PRECISION
