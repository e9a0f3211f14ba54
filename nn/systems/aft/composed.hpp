// AFT as a composition of primitives: the definition, not optimised. B x T x T x D elements; for tests and for readers.
// Arguments and results are those of the fused ops in op.hpp.
#pragma once

#include "core/array/segments.hpp"
#include "core/autograd/var.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// w_ts of every pair of tokens, 0 outside the window: (B, T, T); of the taps (B, H, T, T), a matrix for every head.
Var aft_factorised_bias(const Var& u, const Var& v, const Segments& segments, int64_t window);
Var aft_dense_bias(const Var& w, const Segments& segments, int64_t window);
Var aft_conv_bias(const Var& taps, const Segments& segments, bool causal);

Var aft_simple_composed(const Var& qkv, const Segments& segments, bool causal);
Var aft_factorised_composed(const Var& qkv, const Var& u, const Var& v, const Segments& segments, bool causal,
                            int64_t window);
Var aft_dense_composed(const Var& qkv, const Var& w, const Segments& segments, bool causal, int64_t window);
Var aft_conv_composed(const Var& qkv, const Var& taps, const Segments& segments, bool causal);

}  // namespace capstan::CAPSTAN_PRECISION
