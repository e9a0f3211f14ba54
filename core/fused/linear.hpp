// The affine map with its activation.
// Equals its composition of primitives up to rounding (tests/core/fused/test_*.cpp) and has the gradients of finite
// differences (gradcheck_fused.cpp). Sums depend on shapes alone, not on the number of threads.
#pragma once

#include "core/autograd/var.hpp"
#include "core/kernels/activation.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// y = act(x W^T + b).  x: (..., in), weight: (out, in), bias: (out) or undefined -> y: (..., out).
/// Saves x and, with an activation, the raw product x W^T only. Throws std::invalid_argument naming the shapes.
Var linear(const Var& x, const Var& weight, const Var& bias = Var(), Activation activation = Activation::none);

}  // namespace capstan::CAPSTAN_PRECISION
