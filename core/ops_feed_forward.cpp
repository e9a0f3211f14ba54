#include "core/ops_feed_forward.hpp"

#include "core/error.hpp"
#include "core/kernels/activation.hpp"
#include "core/linear_products.hpp"

CAPSTAN_BEGIN
namespace {

/// What tells the two ops apart: the hidden row made from a raw row, and the way back.
struct Hidden {
  const char* op;
  Activation activation;
  bool gated;

  void forward(const real* pre, const real* bias, real* hidden, int64_t rows, int64_t width) const {
    if (gated)
      kernels::gated_forward(activation, pre, bias, hidden, rows, width);
    else
      kernels::activation_forward(activation, pre, bias, hidden, rows, width);
  }

  struct Backward {
    Array dpre, hidden;
  };
  /// Both results are written over the arguments: the gated dpre is as wide as pre, the plain one as dhidden.
  Backward backward(Array pre, const real* bias, Array dhidden, kernels::ColumnSums dbias) const {
    const int64_t width = dhidden.dim(1), rows = dhidden.dim(0);
    const real *pre_data = pre.data(), *dhidden_data = dhidden.data();
    Array pre_place = take_or_make(pre), dhidden_place = take_or_make(dhidden);
    if (gated) {
      kernels::gated_backward(activation, pre_data, bias, dhidden_data, pre_place.mutable_data(),
                              dhidden_place.mutable_data(), dbias, rows, width);
      return {std::move(pre_place), std::move(dhidden_place)};
    }
    kernels::activation_backward(activation, pre_data, bias, dhidden_data, dhidden_place.mutable_data(),
                                 pre_place.mutable_data(), dbias, rows, width);
    return {std::move(dhidden_place), std::move(pre_place)};
  }
};

struct Weights {
  Array up, up_bias, down;
  const real* up_bias_data() const { return up_bias.data(); }
};

enum Input : size_t { input_x, input_up, input_up_bias, input_down, input_down_bias, input_count };

Var two_layers(const Hidden& layer, const Var& x, const Var& up_weight, const Var& up_bias, const Var& down_weight,
               const Var& down_bias) {
  const LinearSizes up = linear_sizes(x.shape(), up_weight.shape(), up_bias, layer.op);
  check(!layer.gated || up.out % 2 == 0, "{}: the up weight {} must have an even number of rows, gate and value",
        layer.op, up_weight.shape());
  const int64_t width = layer.gated ? up.out / 2 : up.out;
  const LinearSizes down = linear_sizes(Shape{up.rows, width}, down_weight.shape(), down_bias, layer.op);

  const Array b = up_bias ? up_bias.value() : Array();
  Array pre(Shape{up.rows, up.out});
  multiply_rows(x.value().data(), up_weight.value().data(), nullptr, pre.mutable_data(), up);
  Array y(x.shape().with(-1, down.out));
  {
    Array hidden(Shape{up.rows, width});
    layer.forward(pre.data(), b.data(), hidden.mutable_data(), up.rows, width);
    multiply_rows(hidden.data(), down_weight.value().data(), down_bias ? down_bias.value().data() : nullptr,
                  y.mutable_data(), down);
  }
  auto pullback = [layer, xv = x.value(), w = up_weight.value(), b, v = down_weight.value(), pre = std::move(pre),
                         up, down](const Array& dy, const Needs& needs) mutable -> Grads {
    Grads grads(input_count);
    GradSink down_dbias(needs, input_down_bias, Shape{down.out});
    kernels::column_sums(dy.data(), {down_dbias.data(), down_dbias.beta()}, down.rows, down.out);
    grads[input_down_bias] = down_dbias.grad();

    GradSink up_dbias(needs, input_up_bias, Shape{up.out});
    Hidden::Backward back =
        layer.backward(std::move(pre), b.data(), input_grad(dy.data(), v, Shape{down.rows, down.in}, down),
                       {up_dbias.data(), up_dbias.beta()});
    grads[input_up_bias] = up_dbias.grad();
    grads[input_down] = weight_grad(dy.data(), back.hidden.data(), down, needs, input_down);
    back.hidden = Array();
    grads[input_up] = weight_grad(back.dpre.data(), xv.data(), up, needs, input_up);
    if (needs[input_x]) grads[input_x] = input_grad(back.dpre.data(), w, xv.shape(), up);
    return grads;
  };
  return make_var(layer.op, std::move(y), {x, up_weight, up_bias, down_weight, down_bias}, std::move(pullback));
}

}  // namespace

Var feed_forward(const Var& x, const Var& up_weight, const Var& up_bias, const Var& down_weight, const Var& down_bias,
                 Activation activation) {
  return two_layers({"feed_forward", activation, false}, x, up_weight, up_bias, down_weight, down_bias);
}

Var gated_feed_forward(const Var& x, const Var& up_weight, const Var& up_bias, const Var& down_weight,
                       const Var& down_bias, Activation gate) {
  return two_layers({"gated_feed_forward", gate, true}, x, up_weight, up_bias, down_weight, down_bias);
}

CAPSTAN_END
