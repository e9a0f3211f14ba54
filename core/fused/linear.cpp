// linear(): without an activation the product starts from the bias; with one, the pass that applies it adds the bias,
// and the raw product is kept for the pullback. The gradient of the raw product is written over dy where that has no
// other owner.

#include "core/fused/linear.hpp"
#include <utility>

#include "core/autograd/grad_sink.hpp"
#include "core/autograd/tape.hpp"
#include "core/fused/linear_products.hpp"
#include "core/kernels/activation.hpp"
#include "core/machine/profile.hpp"

namespace capstan::CAPSTAN_PRECISION {

Var linear(const Var& x, const Var& weight, const Var& bias, Activation activation) {
  const ProfileSpan span;
  const LinearSizes sizes = linear_sizes(x.shape(), weight.shape(), bias, "linear");
  const bool plain = activation == Activation::none;
  const kernels::ActivationPass pass{activation, sizes.rows, sizes.out};
  const Array b = bias && !plain ? bias.value() : Array();  // added with the activation
  const Factor w(weight), rows(x.value(), w);
  Array y(x.shape().with(-1, sizes.out)), pre;
  multiply_rows(rows, w, bias && plain ? bias.value().data() : nullptr, y.mutable_data(), sizes);
  if (!plain) {
    if (recording({x, weight, bias})) pre = std::exchange(y, Array(y.shape()));
    const real* const from = pre.empty() ? y.data() : pre.data();
    kernels::activation_forward(pass, from, b.data(), y.mutable_data());
  }
  return make_var("linear", std::move(y), {x, weight, bias},
                  [rows, w, shape = x.shape(), b, pre, sizes, pass](Array dy, const Needs& needs) -> Grads {
                    Grads grads(3);
                    GradSink dbias(needs, 2, Shape{sizes.out});
                    const kernels::ColumnSums sums{dbias.data(), dbias.beta()};
                    if (pass.activation == Activation::none) {
                      kernels::column_sums(dy.data(), sums, sizes.rows, sizes.out);
                    } else {
                      const real* const dy_data = dy.data();
                      Array dpre = take_or_make(dy);
                      kernels::activation_backward(pass, pre.data(), b.data(), dy_data, dpre.mutable_data(), nullptr,
                                                   sums);
                      dy = std::move(dpre);
                    }
                    grads[2] = dbias.grad();
                    const Factor d(std::move(dy), w);
                    if (needs[0]) grads[0] = input_grad(d, w, shape, sizes);
                    grads[1] = weight_grad(d, rows, sizes, needs, 1);
                    return grads;
                  });
}

}  // namespace capstan::CAPSTAN_PRECISION
