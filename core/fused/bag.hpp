// Bags of table rows: sums of embeddings, of which a large table gets a sparse gradient.
// Equals its composition of primitives up to rounding (tests/core/fused/test_*.cpp) and has the gradients of finite
// differences (gradcheck_fused.cpp). Sums depend on shapes alone, not on the number of threads.
#pragma once

#include <vector>

#include "core/autograd/var.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// Bag b holds ids[offsets[b]] ... ids[offsets[b + 1] - 1]; its sum is multiplied by factors[b].
struct Bags {
  std::vector<int32_t> ids;
  std::vector<int64_t> offsets = {0};
  std::vector<real> factors;
  int64_t count() const { return static_cast<int64_t>(factors.size()); }
  /// Closes the bag of the ids added since the last one.
  void close(real factor) {
    offsets.push_back(static_cast<int64_t>(ids.size()));
    factors.push_back(factor);
  }
};

/// y[b] = factors[b] * sum of table[id] over bag b; an empty bag gives 0.  table: (V, D) -> (B, D).
/// dtable[v] = sum of factors[b] g[b] over the positions of id v, as the gradient of the rows that are named. Throws
/// std::invalid_argument for an id outside the table.
Var embedding_bag(const Var& table, Bags bags);

}  // namespace capstan::CAPSTAN_PRECISION
