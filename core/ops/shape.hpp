// Operations that move elements without changing them.
#pragma once

#include <vector>

#include "core/autograd/var.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// The same elements under another shape; one extent may be -1 and is worked out. Shares x's buffer.  dx = reshape(g).
Var reshape(const Var& x, const std::vector<int64_t>& extents);
/// Axis i of the result is axis order[i] of x.  dx = the inverse permutation of g.
Var transpose(const Var& x, const std::vector<int>& order);
/// (..., M, N) -> (..., N, M).
Var transpose(const Var& x);
/// Entries [begin, end) of `axis`.  dx = g there, 0 elsewhere.
Var slice(const Var& x, int axis, int64_t begin, int64_t end);
/// Parts that agree in all extents but that of `axis`, one after another.  Each part's gradient is its slice of g.
Var concatenate(const std::vector<Var>& parts, int axis);
/// Consecutive pieces of the given sizes along `axis`; the sizes must add up to its extent. One op with several
/// outputs, so that the gradient is put together once.  dx = concatenate(g); 0 for an output that was not used.
std::vector<Var> split(const Var& x, int axis, const std::vector<int64_t>& sizes);
/// x repeated along the axes it lacks or in which its extent is 1.  dx = g summed over them.
Var broadcast_to(const Var& x, const Shape& shape);

}  // namespace capstan::CAPSTAN_PRECISION
