// An operation of our own: one function from Var to Var.
#pragma once

#include "core/autograd/var.hpp"

// Code that depends on `real` is in this namespace, which is capstan::f32 in float builds and capstan::f64 in double
// builds. Both can be linked into one program.
namespace capstan::CAPSTAN_PRECISION {

/// y = log(1 + e^x), without overflow.  dx = g sigmoid(x).
Var softplus(const Var& x);

}  // namespace capstan::CAPSTAN_PRECISION
