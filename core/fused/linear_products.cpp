// Matrix products of an affine map. A product has two bf16 factors or none: a Factor is rounded to bf16 exactly when
// the weight it meets has a bf16 copy. tests/core/ops/float_bf16_ops.cpp and tests/core/fused/test_linear.cpp.
#include "core/fused/linear_products.hpp"

#include <algorithm>
#include <type_traits>

#include "core/autograd/grad_sink.hpp"
#include "core/base/error.hpp"
#include "core/kernels/elementwise.hpp"
#include "core/machine/parallel.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

// Templates, so that the branches for bf16 vanish where `real` is double.

template <class T>
Bf16Array rounded(const T* x, int64_t count) {
  Bf16Array result(Shape{count});
  if constexpr (std::is_same_v<T, float>) kernels::round_to_bf16(result.mutable_data(), x, count);
  return result;
}

/// One side of a product: a Factor, elements from row to row, and whether it is taken transposed.
struct Operand {
  const Factor& factor;
  int64_t stride;
  Transpose transpose = Transpose::no;
};

/// C (m, n) = A B + beta * C
template <class T>
void multiply(int64_t m, int64_t n, int64_t k, const Operand& a, const Operand& b, T* c, T beta) {
  if constexpr (std::is_same_v<T, float>) {
    if (a.factor.is_bf16() && b.factor.is_bf16())
      return gemm(m, n, k, Bf16View{a.factor.bf16(), a.stride, a.transpose},
                  Bf16View{b.factor.bf16(), b.stride, b.transpose}, c, n, beta);
  }
  gemm(m, n, k, MatrixView{a.factor.data(), a.stride, a.transpose}, MatrixView{b.factor.data(), b.stride, b.transpose},
       c, n, T{1}, beta);
}

/// y = x W^T + beta * y
void forward_product(const Factor& x, const Factor& weight, real* y, const LinearSizes& sizes, real beta) {
  multiply(sizes.rows, sizes.out, sizes.in, {x, sizes.in}, {weight, sizes.in, Transpose::yes}, y, beta);
}

}  // namespace

LinearSizes linear_sizes(const Shape& x, const Shape& weight, const Var& bias, const char* op) {
  check(x.rank() >= 1, "{}: x must have at least one axis, got shape {}", op, x);
  check(weight.rank() == 2 && weight[1] == x[-1], "{}: x {} does not fit a weight {} (out, in)", op, x, weight);
  check(!bias || bias.shape() == Shape{weight[0]}, "{}: the bias must be ({}), got shape {}", op, weight[0],
        bias ? bias.shape() : Shape{});
  return {x.product(0, x.rank() - 1), weight[1], weight[0]};
}

Factor::Factor(Array x, const Factor& weight) : Factor(x.data(), x.size(), weight) {
  if (!weight.is_bf16()) value_ = std::move(x);
}

Factor::Factor(const real* x, int64_t count, const Factor& weight) {
  if (weight.is_bf16())
    rounded_ = rounded(x, count);
  else
    data_ = x;
}

void multiply_rows(const Factor& x, const Factor& weight, const real* bias, real* y, const LinearSizes& sizes) {
  // A product clears its output first unless beta is 1; writing the bias there instead saves a pass for adding it.
  if (bias != nullptr)
    parallel_each(sizes.rows, std::max<int64_t>(1, 16384 / std::max<int64_t>(sizes.out, 1)),
                  [&](int64_t row) { std::copy_n(bias, sizes.out, y + row * sizes.out); });
  forward_product(x, weight, y, sizes, bias != nullptr ? real{1} : real{0});
}

void add_rows(const Factor& x, const Factor& weight, real* y, const LinearSizes& sizes) {
  forward_product(x, weight, y, sizes, real{1});
}

void input_grad(const Factor& dy, const Factor& weight, real* dx, const LinearSizes& sizes) {
  multiply(sizes.rows, sizes.in, sizes.out, {dy, sizes.out}, {weight, sizes.in}, dx, real{0});
}

Array input_grad(const Factor& dy, const Factor& weight, const Shape& x, const LinearSizes& sizes) {
  Array dx(x);
  input_grad(dy, weight, dx.mutable_data(), sizes);
  return dx;
}

void weight_grad(const Factor& dy, const Factor& x, real* dweight, real beta, const LinearSizes& sizes) {
  multiply(sizes.out, sizes.in, sizes.rows, {dy, sizes.out, Transpose::yes}, {x, sizes.in}, dweight, beta);
}

Grad weight_grad(const Factor& dy, const Factor& x, const LinearSizes& sizes, const Needs& needs, size_t input) {
  GradSink dweight(needs, input, Shape{sizes.out, sizes.in});
  if (dweight) weight_grad(dy, x, dweight.data(), dweight.beta(), sizes);
  return dweight.grad();
}

Array take_or_make(Array& array) { return array.unique() ? std::move(array) : Array(array.shape()); }

}  // namespace capstan::CAPSTAN_PRECISION
