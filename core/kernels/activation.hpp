// Activations with bias over the rows of a matrix, and column sums.
#pragma once

#include <cstdint>

#include "core/kernels/activation_kind.hpp"
#include "core/kernels/column_sums.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

/// out = act(pre + bias).  pre, out: (rows, columns), may be the same; bias: (columns) or null.
void activation_forward(Activation activation, const real* pre, const real* bias, real* out, int64_t rows,
                        int64_t columns);

/// dpre = dy * act'(pre + bias), its column sums into dbias, and, unless `out` is null, out = act(pre + bias) again.
/// dpre may be dy; out may be pre.
void activation_backward(Activation activation, const real* pre, const real* bias, const real* dy, real* dpre,
                         real* out, ColumnSums dbias, int64_t rows, int64_t columns);

/// out = act(g) * h, where a row of pre (rows, 2 * columns) plus bias (2 * columns) is [g | h].  out: (rows, columns).
void gated_forward(Activation gate, const real* pre, const real* bias, real* out, int64_t rows, int64_t columns);

/// dpre = [dout * h * act'(g) | dout * act(g)] (rows, 2 * columns), its column sums into dbias, and `out` again unless
/// null. dpre may be pre; out may be dout.
void gated_backward(Activation gate, const real* pre, const real* bias, const real* dout, real* dpre, real* out,
                    ColumnSums dbias, int64_t rows, int64_t columns);

}  // namespace capstan::CAPSTAN_PRECISION::kernels
