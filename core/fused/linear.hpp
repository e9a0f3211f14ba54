// The affine map with its activation.
#pragma once

#include "core/autograd/var.hpp"
#include "core/kernels/activation_kind.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// y = act(x W^T + b).  x: (..., in), weight: (out, in), bias: (out) or undefined -> y: (..., out).
/// Saves x and, with an activation, the raw product x W^T only. Throws std::invalid_argument naming the shapes.
Var linear(const Var& x, const Var& weight, const Var& bias = Var(), Activation activation = Activation::none);

}  // namespace capstan::CAPSTAN_PRECISION
