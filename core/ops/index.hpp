// Reading at given places. An index outside its range throws std::invalid_argument naming the index and its position.
// All gradients are sums in a fixed order: they do not depend on the number of threads.
#pragma once

#include "core/autograd/var.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// y = x taken at `index` along `axis`: x (A, N, C), index (I...) -> (A, I..., C), y[a, i, c] = x[a, index[i], c].
/// dx[a, n, c] = sum of g[a, i, c] over the i with index[i] = n.
Var gather(const Var& x, const Ids& index, int axis = 0);
/// Rows of a table: table (V, D), ids (...) -> (..., D).  dtable[v] = sum of g over the positions of id v, added
/// to the block in place where the table is a parameter.
Var embedding(const Var& table, const Ids& ids);

}  // namespace capstan::CAPSTAN_PRECISION
