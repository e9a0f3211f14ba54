// Point-wise functions: those that configurations and ops know by name, with bias over the rows of a matrix, and exact
// functions of contiguous memory.
// Loops over pointers: no shapes, no tape. A portable build has them once for each level of the CPU
// (core/machine/kernel_levels.hpp). Results depend neither on the number of threads nor on the width of registers:
// tests/core/products/float_in_order.cpp, tests/models/portable_levels.cpp.
#pragma once

#include <cstdint>

#include "core/base/real.hpp"
#include "core/kernels/activation_kind.hpp"
#include "core/kernels/column_sums.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

/// Functions whose bits no library decides about.
enum class Function { exp, log, sigmoid, tanh };
/// out = f(in), on the calling thread; out may be in.
void apply(Function function, real* out, const real* in, int64_t count);

/// a . b, on the calling thread.
real dot(const real* a, const real* b, int64_t count);

/// How a row of pre becomes a row of out with `columns` elements: act(pre) or, if gated, act(g) * h for a row [g | h]
/// of 2 * columns elements. The bias, as wide as a row of pre, is added first; null: none.
struct ActivationPass {
  Activation activation;
  int64_t rows, columns;
  bool gated = false;
};

/// out may be pre where it is not gated.
void activation_forward(const ActivationPass& pass, const real* pre, const real* bias, real* out);

/// dpre = dout * act'(pre), or gated [dout * h * act'(g) | dout * act(g)], its column sums into dbias, and, unless
/// `out` is null, out again. dpre may be pre, or dout where it is as wide; out may be dout, or pre where it is as wide.
void activation_backward(const ActivationPass& pass, const real* pre, const real* bias, const real* dout, real* dpre,
                         real* out, ColumnSums dbias);

}  // namespace capstan::CAPSTAN_PRECISION::kernels
