#include "core/fused/feed_forward.hpp"

#include "core/base/error.hpp"
#include "core/fused/linear_products.hpp"
#include "core/kernels/activation.hpp"
#include "core/machine/profile.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// What distinguishes the two ops: how a hidden row is made from a raw row, and the way back.
struct HiddenLayer {
  const char* op;
  Activation activation;
  bool gated;
  DropoutOptions dropout;
  Shape shape = {};  // of the hidden values, (..., F)

  kernels::ActivationPass pass() const { return {activation, shape.product(0, shape.rank() - 1), shape[-1], gated}; }
};

struct HiddenGrad {
  Array dpre;    // of the raw product
  Array hidden;  // the hidden values, formed again
};

void drop(const HiddenLayer& layer, Array& hidden) {
  if (layer.dropout.rate != 0) apply_dropout(layer.shape, layer.dropout, hidden.data(), hidden.mutable_data());
}

Array hidden_forward(const HiddenLayer& layer, const Array& pre, const real* bias) {
  Array hidden(layer.shape);
  kernels::activation_forward(layer.pass(), pre.data(), bias, hidden.mutable_data());
  drop(layer, hidden);
  return hidden;
}

/// Both results are written over the arguments where these have no other owner.
HiddenGrad hidden_backward(const HiddenLayer& layer, Array pre, const real* bias, Array dhidden,
                           kernels::ColumnSums dbias) {
  drop(layer, dhidden);
  const real *pre_data = pre.data(), *dhidden_data = dhidden.data();
  HiddenGrad result{take_or_make(pre), take_or_make(dhidden)};
  kernels::activation_backward(layer.pass(), pre_data, bias, dhidden_data, result.dpre.mutable_data(),
                               result.hidden.mutable_data(), dbias);
  drop(layer, result.hidden);
  return result;
}

struct Parameters {
  const Var &up_weight, &up_bias, &down_weight, &down_bias;
};
enum Input : size_t { input_x, input_up, input_up_bias, input_down, input_down_bias, input_count };

Var two_layers(HiddenLayer layer, const Var& x, const Parameters& p) {
  const ProfileSpan span;
  const LinearSizes up = linear_sizes(x.shape(), p.up_weight.shape(), p.up_bias, layer.op);
  check(!layer.gated || up.out % 2 == 0, "{}: the up weight {} must have an even number of rows, gate and value",
        layer.op, p.up_weight.shape());
  layer.shape = x.shape().with(-1, layer.gated ? up.out / 2 : up.out);
  const LinearSizes down = linear_sizes(layer.shape, p.down_weight.shape(), p.down_bias, layer.op);

  const Array up_bias = p.up_bias ? p.up_bias.value() : Array();
  Array pre(x.shape().with(-1, up.out)), y(x.shape().with(-1, down.out));
  const Factor up_weight(p.up_weight), down_weight(p.down_weight), rows(x.value(), up_weight);
  multiply_rows(rows, up_weight, nullptr, pre.mutable_data(), up);
  multiply_rows(Factor(hidden_forward(layer, pre, up_bias.data()), down_weight), down_weight,
                p.down_bias ? p.down_bias.value().data() : nullptr, y.mutable_data(), down);

  auto pullback = [layer, up, down, rows, x_shape = x.shape(), up_weight, up_bias, down_weight, pre = std::move(pre)](
                      const Array& dy, const Needs& needs) mutable -> Grads {
    Grads grads(input_count);
    GradSink down_dbias(needs, input_down_bias, Shape{down.out}), up_dbias(needs, input_up_bias, Shape{up.out});
    kernels::column_sums(dy.data(), {down_dbias.data(), down_dbias.beta()}, down.rows, down.out);
    const Factor d(dy, down_weight);
    HiddenGrad back =
        hidden_backward(layer, std::move(pre), up_bias.data(), input_grad(d, down_weight, layer.shape, down),
                        {up_dbias.data(), up_dbias.beta()});
    grads[input_down] = weight_grad(d, Factor(std::move(back.hidden), down_weight), down, needs, input_down);
    const Factor dpre(std::move(back.dpre), up_weight);
    grads[input_up] = weight_grad(dpre, rows, up, needs, input_up);
    if (needs[input_x]) grads[input_x] = input_grad(dpre, up_weight, x_shape, up);
    grads[input_up_bias] = up_dbias.grad();
    grads[input_down_bias] = down_dbias.grad();
    return grads;
  };
  return make_var(layer.op, std::move(y), {x, p.up_weight, p.up_bias, p.down_weight, p.down_bias}, std::move(pullback));
}

}  // namespace

Var feed_forward(const Var& x, const Var& up_weight, const Var& up_bias, const Var& down_weight, const Var& down_bias,
                 Activation activation, const DropoutOptions& hidden_dropout) {
  return two_layers({"feed_forward", activation, false, hidden_dropout}, x,
                    {up_weight, up_bias, down_weight, down_bias});
}

Var gated_feed_forward(const Var& x, const Var& up_weight, const Var& up_bias, const Var& down_weight,
                       const Var& down_bias, Activation gate, const DropoutOptions& hidden_dropout) {
  return two_layers({"gated_feed_forward", gate, true, hidden_dropout}, x,
                    {up_weight, up_bias, down_weight, down_bias});
}

}  // namespace capstan::CAPSTAN_PRECISION
