// Token shift: a token sees some features of the one before it. For flash with compat.shift_tokens;
// tests/nn/systems/flash/test_shift.cpp.
#pragma once

#include "core/array/segments.hpp"
#include "core/autograd/tape.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// Features of D that shift_tokens() takes from the token before.
inline int64_t shifted_features(int64_t width) { return (width + 1) / 2; }

/// x: (B, T, D) -> (B, T, D).  The first half of a token's features (for an odd D one more) become those of the token
/// before it in its document, 0 for the first; the others stay. Padding gives 0 and gets no gradient.
Var shift_tokens(const Var& x, const Segments& segments);

}  // namespace capstan::CAPSTAN_PRECISION
