// The three matrix products of an affine map, for the ops that contain one.
#pragma once

#include "core/array.hpp"
#include "core/gemm.hpp"
#include "core/grad_sink.hpp"

CAPSTAN_BEGIN

/// Sizes of x: (..., in) -> y: (..., out), the leading axes viewed as rows.
struct LinearSizes {
  int64_t rows, in, out;
};

/// Checks x, weight (out, in) and bias (out) or undefined. Throws std::invalid_argument naming `op` and the shapes.
LinearSizes linear_sizes(const Shape& x, const Shape& weight, const Var& bias, const char* op);

/// y = x W^T (+ b unless null)
void multiply_rows(const real* x, const real* weight, const real* bias, real* y, const LinearSizes& sizes);
/// dx = dy W, of shape `x`.
Array input_grad(const real* dy, const Array& weight, const Shape& x, const LinearSizes& sizes);
/// dW = dy^T x, into the block of input `input` where it has one; nothing where it needs none.
Grad weight_grad(const real* dy, const real* x, const LinearSizes& sizes, const Needs& needs, size_t input);

/// Takes `array` itself where nobody else holds it, so that a result may be written over what it is made from; else
/// makes a new one of its shape and leaves `array` alone.
Array take_or_make(Array& array);

CAPSTAN_END
