// Attention as a composition of primitives: the definition, not optimised. B x H x T x T elements; for tests and for
// readers. Arguments and results are those of attention() in op.hpp.
#pragma once

#include "core/array/segments.hpp"
#include "core/autograd/var.hpp"
#include "nn/systems/quadratic/options.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// What query i takes of the value of key j, (B, H, T, T): O = A v. 0 where the key is not visible.
Var attention_weights(const Var& q, const Var& k, const Var& bias, const Segments& segments,
                      const AttentionOptions& options);

Var attention_composed(const Var& q, const Var& k, const Var& v, const Var& bias, const Segments& segments,
                       const AttentionOptions& options);

}  // namespace capstan::CAPSTAN_PRECISION
