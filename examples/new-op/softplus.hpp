// An operation of our own: one function from Var to Var.
#pragma once

#include "core/autograd/var.hpp"

// What depends on `real` (float here, double there) stands between these two, so that the two never meet under one
// name.
namespace capstan::CAPSTAN_PRECISION {

/// y = log(1 + e^x), without overflow.  dx = g sigmoid(x).
Var softplus(const Var& x);

}  // namespace capstan::CAPSTAN_PRECISION
