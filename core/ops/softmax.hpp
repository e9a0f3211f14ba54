// Softmax over the last axis.  x: (..., D) -> y: (..., D). A mask broadcasts to x: entries where it is 0 take no part,
// their results and gradients are 0, and their x may be anything. A row with no entry left gives zeros and zero
// gradients.
#pragma once

#include "core/autograd/var.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// y_i = e^(x_i - m) / sum_j e^(x_j - m) with m = max x.  dx = y (g - sum(g y)). Saves y.
Var softmax(const Var& x);
Var softmax(const Var& x, const Array& mask);

}  // namespace capstan::CAPSTAN_PRECISION
