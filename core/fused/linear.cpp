#include "core/fused/linear.hpp"

#include "core/fused/linear_products.hpp"
#include "core/kernels/activation.hpp"
#include "core/machine/profile.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// x W^T + b. Saves x, as its product takes it.
Var plain_linear(const Var& x, const Var& weight, const Var& bias, const LinearSizes& sizes) {
  Array y(x.shape().with(-1, sizes.out));
  const Factor w(weight), rows(x.value(), w);
  multiply_rows(rows, w, bias ? bias.value().data() : nullptr, y.mutable_data(), sizes);
  return make_var("linear", std::move(y), {x, weight, bias},
                  [rows, w, shape = x.shape(), sizes](const Array& dy, const Needs& needs) -> Grads {
                    Grads grads(3);
                    const Factor d(dy, w);
                    if (needs[0]) grads[0] = input_grad(d, w, shape, sizes);
                    grads[1] = weight_grad(d, rows, sizes, needs, 1);
                    GradSink dbias(needs, 2, Shape{sizes.out});
                    kernels::column_sums(dy.data(), {dbias.data(), dbias.beta()}, sizes.rows, sizes.out);
                    grads[2] = dbias.grad();
                    return grads;
                  });
}

}  // namespace

Var linear(const Var& x, const Var& weight, const Var& bias, Activation activation) {
  const ProfileSpan span;
  const LinearSizes sizes = linear_sizes(x.shape(), weight.shape(), bias, "linear");
  if (activation == Activation::none) return plain_linear(x, weight, bias, sizes);
  const Array b = bias ? bias.value() : Array();
  Array pre(x.shape().with(-1, sizes.out));
  const Factor w(weight), rows(x.value(), w);
  multiply_rows(rows, w, nullptr, pre.mutable_data(), sizes);
  if (!recording({x, weight, bias})) {
    kernels::activation_forward(activation, pre.data(), b.data(), pre.mutable_data(), sizes.rows, sizes.out);
    return Var(std::move(pre));
  }
  Array y(pre.shape());
  kernels::activation_forward(activation, pre.data(), b.data(), y.mutable_data(), sizes.rows, sizes.out);
  return make_var("linear", std::move(y), {x, weight, bias},
                  [rows, w, shape = x.shape(), b, pre, sizes, activation](Array dy, const Needs& needs) -> Grads {
                    Grads grads(3);
                    GradSink dbias(needs, 2, Shape{sizes.out});
                    const real* dy_data = dy.data();
                    Array dpre = take_or_make(dy);
                    kernels::activation_backward(activation, pre.data(), b.data(), dy_data, dpre.mutable_data(),
                                                 nullptr, {dbias.data(), dbias.beta()}, sizes.rows, sizes.out);
                    grads[2] = dbias.grad();
                    const Factor d(dpre, w);
                    if (needs[0]) grads[0] = input_grad(d, w, shape, sizes);
                    grads[1] = weight_grad(d, rows, sizes, needs, 1);
                    return grads;
                  });
}

}  // namespace capstan::CAPSTAN_PRECISION
