// Normalisation over the last axis. Each op saves its input and one or two values per row.
// Equals its composition of primitives up to rounding (tests/core/fused/test_*.cpp) and has the gradients of finite
// differences (gradcheck_fused.cpp). Sums depend on shapes alone, not on the number of threads.
#pragma once

#include "core/autograd/var.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// y = (x - mean x) / sqrt(var x + eps) * gain + bias.  x: (..., D), gain, bias: (D) or undefined (1 and 0).
/// The variance divides by D. Ba et al. 2016, arXiv 1607.06450. Throws std::invalid_argument naming the shapes.
Var layer_norm(const Var& x, const Var& gain = Var(), const Var& bias = Var(), double eps = 1e-5);

/// y = x / sqrt(mean x^2 + eps) * gain.  x: (..., D), gain: (D) or undefined. Zhang and Sennrich 2019, arXiv
/// 1910.07467. Throws std::invalid_argument naming the shapes, or for a negative eps.
Var rms_norm(const Var& x, const Var& gain = Var(), double eps = 1e-6);

/// rms_norm with one gain for all features.  gain: () or (1).
/// Nguyen and Salazar 2019, arXiv 1910.05895, as FLASH uses it.
Var scale_norm(const Var& x, const Var& gain, double eps = 1e-6);

}  // namespace capstan::CAPSTAN_PRECISION
