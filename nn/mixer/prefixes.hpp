// Documents whose beginning is read as a whole: a prefix language model (Raffel et al. 2020, section 3.2.1).
#pragma once

#include "core/array/array.hpp"
#include "core/autograd/var.hpp"
#include "core/ops/math.hpp"
#include "nn/layers/context.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// What tokens outside of the prefixes keep: (B, T, 1), 1 there and 0 within a prefix; or (B, 1, T, 1), for rank 4.
Array outside_prefixes(const Context& context, int64_t rank = 3);

/// mix(segments, causal) -> (B, T, D) or the weights for it, (B, H, T, T); 0 for padding. In a causal model, tokens of
/// a prefix see all of it and nothing else; later ones see the prefix and the tokens up to their own. The two are
/// separate calls, so a mixer needs no mask for it; what it computes before and after must not depend on the direction.
template <class Mix>
Var mix_with_prefix(const Context& context, bool causal, const Mix& mix) {
  const Var later = mix(context.segments, causal);
  if (!causal || context.prefixes.batch() == 0) return later;
  return mix(context.prefixes, /*causal=*/false) + later * Var(outside_prefixes(context, later.rank()));
}

}  // namespace capstan::CAPSTAN_PRECISION
