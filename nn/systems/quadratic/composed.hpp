// Attention as a composition of primitives: the definition, not optimised. B x H x T x T elements; for tests
// and for readers. The arguments are those of nn/systems/quadratic/op.hpp, which computes the same.
#pragma once

#include "nn/systems/quadratic/op.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// What query i takes of the value of key j, (B, H, T, T): O = A v. 0 where the key is not visible.
Var attention_weights(const Var& q, const Var& k, const Var& bias, const Segments& segments,
                      const AttentionOptions& options);

Var attention_composed(const Var& q, const Var& k, const Var& v, const Var& bias, const Segments& segments,
                       const AttentionOptions& options);

}  // namespace capstan::CAPSTAN_PRECISION
