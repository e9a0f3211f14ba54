// Matrix products of Vars.
#pragma once

#include "core/autograd/var.hpp"
#include "core/products/gemm.hpp"

namespace capstan::CAPSTAN_PRECISION {

struct MatmulOptions {
  Transpose a = Transpose::no, b = Transpose::no;  // take the last two axes of the operand transposed
};

/// y = a b.  a: (..., M, K), b: (..., K, N) -> (..., M, N); with Transpose::yes an operand is stored (..., K, M) or
/// (..., N, K). The leading axes broadcast.  da = g b^T, db = a^T g, summed over broadcast axes; the gradient of a
/// parameter is added to its block in place. Throws std::invalid_argument for a rank below 2
/// and for shapes that do not fit.
Var matmul(const Var& a, const Var& b, const MatmulOptions& options = {});

}  // namespace capstan::CAPSTAN_PRECISION
