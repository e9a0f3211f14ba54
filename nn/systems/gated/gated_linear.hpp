// The end of a gated unit: gate and output projection in one. Hua et al. 2022, arXiv 2202.10447.
#pragma once

#include "core/autograd/var.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// y = (gate * x) W^T + b.  gate, x: (..., in), weight: (out, in), bias: (out) or undefined -> (..., out). The gated
/// rows exist a few thousand at a time, forward and in the pullback, which saves gate and x and writes their gradients
/// over them where these are the only handles. Throws std::invalid_argument naming the shapes.
Var gated_linear(const Var& gate, const Var& x, const Var& weight, const Var& bias = Var());

}  // namespace capstan::CAPSTAN_PRECISION
