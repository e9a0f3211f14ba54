#include "core/linear_products.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/parallel.hpp"

CAPSTAN_BEGIN

LinearSizes linear_sizes(const Shape& x, const Shape& weight, const Var& bias, const char* op) {
  check(x.rank() >= 1, "{}: x must have at least one axis, got shape {}", op, x);
  check(weight.rank() == 2 && weight[1] == x[-1], "{}: x {} does not fit a weight {} (out, in)", op, x, weight);
  check(!bias || bias.shape() == Shape{weight[0]}, "{}: the bias must be ({}), got shape {}", op, weight[0],
        bias ? bias.shape() : Shape{});
  return {x.product(0, x.rank() - 1), weight[1], weight[0]};
}

void multiply_rows(const real* x, const real* weight, const real* bias, real* y, const LinearSizes& sizes) {
  // A product without beta starts by clearing its output; starting from the bias instead costs nothing.
  if (bias != nullptr)
    parallel_for(sizes.rows, std::max<int64_t>(1, 16384 / std::max<int64_t>(sizes.out, 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t row = begin; row < end; ++row) std::copy_n(bias, sizes.out, y + row * sizes.out);
                 });
  gemm(sizes.rows, sizes.out, sizes.in, {x, sizes.in}, {weight, sizes.in, Transpose::yes}, y, sizes.out, 1,
       bias != nullptr ? real{1} : real{0});
}

Array input_grad(const real* dy, const Array& weight, const Shape& x, const LinearSizes& sizes) {
  Array dx(x);
  gemm(sizes.rows, sizes.in, sizes.out, {dy, sizes.out}, {weight.data(), sizes.in}, dx.mutable_data(), sizes.in);
  return dx;
}

Grad weight_grad(const real* dy, const real* x, const LinearSizes& sizes, const Needs& needs, size_t input) {
  GradSink dweight(needs, input, Shape{sizes.out, sizes.in});
  if (dweight)
    gemm(sizes.out, sizes.in, sizes.rows, {dy, sizes.out, Transpose::yes}, {x, sizes.in}, dweight.data(), sizes.in, 1,
         dweight.beta());
  return dweight.grad();
}

Array take_or_make(Array& array) { return array.unique() ? std::move(array) : Array(array.shape()); }

CAPSTAN_END
