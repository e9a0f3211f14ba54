// Sums and means along axes. An axis named twice throws std::invalid_argument.
#pragma once

#include <vector>

#include "core/autograd/var.hpp"

namespace capstan::CAPSTAN_PRECISION {

using Axes = std::vector<int>;

struct ReduceOptions {
  bool keep_dims = false;  // reduced axes stay, with extent 1
};
/// sum(x, {-1}, keep_dims)
inline constexpr ReduceOptions keep_dims{true};

/// Sum over all elements, a scalar; or over `axes`.  dx = g, broadcast back. Empty sums are 0.
Var sum(const Var& x);
Var sum(const Var& x, const Axes& axes, const ReduceOptions& options = {});
/// Mean over n elements.  dx = g / n. Throws std::invalid_argument for n = 0.
Var mean(const Var& x);
Var mean(const Var& x, const Axes& axes, const ReduceOptions& options = {});

}  // namespace capstan::CAPSTAN_PRECISION
