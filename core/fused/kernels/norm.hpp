// Normalisation of the rows of a matrix.
// Loops over pointers, rows shared out to the threads: results depend neither on the number of threads nor on the width
// of registers (tests/core/fused, tests/models/portable_levels.cpp).
#pragma once

#include <cstdint>

#include "core/base/real.hpp"
#include "core/kernels/column_sums.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

/// n = (x - mean x) / sqrt(var x + eps) when centred, else x / sqrt(mean x^2 + eps).
enum class NormForm { centred, rms };

/// What both ways of a norm over rows of `columns` elements share.
/// gain is (columns) or null for 1; `scale` multiplies all.
struct NormPass {
  NormForm kind;
  int64_t rows, columns;
  const real* gain = nullptr;
  real scale = 1;
  double eps = 0;
};

/// y = n * gain * scale + bias, bias (columns) or null; y may be x. mean and rstd (rows) are kept for the way back;
/// mean is null unless centred.
void norm_forward(const NormPass& pass, const real* bias, const real* x, real* y, real* mean, real* rstd);

/// dx (may be dy; null: not wanted), column sums of dy * n into dgain and of dy into dbias, and row sums of dy * n into
/// row_dots (rows) unless null.
void norm_backward(const NormPass& pass, const real* x, const real* mean, const real* rstd, const real* dy, real* dx,
                   ColumnSums dgain, ColumnSums dbias, real* row_dots);

}  // namespace capstan::CAPSTAN_PRECISION::kernels
