// The two-layer feed-forward networks of Transformer blocks, each one op: the hidden activation is never kept.
// Equals its composition of primitives up to rounding (tests/core/fused/test_*.cpp) and has the gradients of finite
// differences (gradcheck_fused.cpp). Sums depend on shapes alone, not on the number of threads.
#pragma once

#include "core/autograd/var.hpp"
#include "core/kernels/activation.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// y = act(x U^T + u) V^T + v.  x: (..., D), up_weight U: (F, D), up_bias u: (F), down_weight V: (E, F),
/// down_bias v: (E) -> y: (..., E). Biases may be undefined. Saves x and x U^T only; the pullback forms the activation
/// again. Throws std::invalid_argument naming the shapes.
Var feed_forward(const Var& x, const Var& up_weight, const Var& up_bias, const Var& down_weight, const Var& down_bias,
                 Activation activation);

/// y = (act(g) * h) V^T + v with [g | h] = x U^T + u.  As feed_forward, with U: (2F, D) and u: (2F), the gate's
/// half first. GLU with sigmoid (Dauphin et al. 2017), SwiGLU with silu,
/// GeGLU with gelu (Shazeer 2020, arXiv 2002.05202).
Var gated_feed_forward(const Var& x, const Var& up_weight, const Var& up_bias, const Var& down_weight,
                       const Var& down_bias, Activation gate);

}  // namespace capstan::CAPSTAN_PRECISION
