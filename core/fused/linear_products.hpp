// The three matrix products of an affine map, for the ops that contain one (core/fused, and gated, fastformer and aft
// in nn/systems): the one place that decides whether they are computed in bf16. tests/core/ops/float_bf16_ops.cpp
// checks when they are.
#pragma once

#include "core/array/array.hpp"
#include "core/autograd/tape.hpp"
#include "core/products/gemm.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// Sizes of x: (..., in) -> y: (..., out), the leading axes viewed as rows.
struct LinearSizes {
  int64_t rows, in, out;
};

/// Checks x, weight (out, in) and bias (out) or undefined. Throws std::invalid_argument naming `op` and the shapes.
LinearSizes linear_sizes(const Shape& x, const Shape& weight, const Var& bias, const char* op);

/// A matrix as the products of one affine map take it: its elements as they are; or bf16 ones, to which the weight was
/// rounded beforehand (nn/params/param_store.hpp) and everything it is multiplied with is rounded here. One Factor
/// serves all products of its matrix, the pullback's too; the elements it was made from are kept only if they are used.
class Factor {
 public:
  /// A weight: its bf16 copy where it has one, else its value.
  explicit Factor(const Var& weight) : value_(weight.value()), data_(value_.data()), rounded_(weight.bf16()) {
    if (is_bf16()) value_ = Array();
  }
  /// The other factor of a product with `weight`, in the precision of `weight`.
  Factor(Array x, const Factor& weight);
  /// Takes `count` elements, which must outlive the Factor.
  Factor(const real* x, int64_t count, const Factor& weight);

  bool is_bf16() const { return !rounded_.empty(); }
  const real* data() const { return data_; }            // null where it is bf16
  const Bf16* bf16() const { return rounded_.data(); }  // null where it is not

 private:
  Array value_;
  const real* data_ = nullptr;
  Bf16Array rounded_;
};

/// y = x W^T (+ b unless null)
void multiply_rows(const Factor& x, const Factor& weight, const real* bias, real* y, const LinearSizes& sizes);
/// y += x W^T
void add_rows(const Factor& x, const Factor& weight, real* y, const LinearSizes& sizes);
/// dx = dy W
void input_grad(const Factor& dy, const Factor& weight, real* dx, const LinearSizes& sizes);
/// dx = dy W, of shape `x`.
Array input_grad(const Factor& dy, const Factor& weight, const Shape& x, const LinearSizes& sizes);
/// dW = dy^T x + beta * dW, with beta 0 or 1
void weight_grad(const Factor& dy, const Factor& x, real* dweight, real beta, const LinearSizes& sizes);
/// dW = dy^T x, into the block of input `input` where it has one; nothing where it needs none.
Grad weight_grad(const Factor& dy, const Factor& x, const LinearSizes& sizes, const Needs& needs, size_t input);

/// Takes `array` itself where it is the only handle, so that a result may be written over what it is made from; else
/// makes a new one of its shape and leaves `array` alone.
Array take_or_make(Array& array);

}  // namespace capstan::CAPSTAN_PRECISION
