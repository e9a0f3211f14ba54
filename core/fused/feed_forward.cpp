// Both ops are a product up, a pass that makes hidden rows of raw ones, and a product down. Hidden values exist for
// some thousand rows at a time and are made again in the pullback, which writes the gradient of the raw product over
// it. tests/core/fused/test_feed_forward.cpp holds the values, and what is kept.

#include "core/fused/feed_forward.hpp"
#include <algorithm>
#include <utility>

#include "core/autograd/grad_sink.hpp"
#include "core/autograd/tape.hpp"
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
  Shape shape = {};  // of the hidden values, (..., F)
};

/// Rows whose hidden values exist at once: those of a long text would take as much memory as what its pullback keeps.
constexpr int64_t strip_rows = 8192;

/// body(first row, rows) for all rows in strips; once, with no rows, where there are none, which sets gradients to 0.
template <class Body>
void for_each_strip(int64_t rows, const Body& body) {
  int64_t first = 0;
  do {
    body(first, std::min(strip_rows, rows - first));
  } while ((first += strip_rows) < rows);
}

kernels::ActivationPass pass_of(const HiddenLayer& layer, int64_t rows) {
  return {layer.activation, rows, layer.shape[-1], layer.gated};
}

/// y = down(hidden(pre))
void hidden_forward(const HiddenLayer& layer, const LinearSizes& down, const Array& pre, const real* up_bias,
                    const Factor& down_weight, const real* down_bias, real* y) {
  const int64_t raw = pre.dim(-1);
  for_each_strip(down.rows, [&](int64_t first, int64_t rows) {
    Array hidden(Shape{rows, down.in});
    kernels::activation_forward(pass_of(layer, rows), pre.data() + first * raw, up_bias, hidden.mutable_data());
    multiply_rows(Factor(std::move(hidden), down_weight), down_weight, down_bias, y + first * down.out,
                  {rows, down.in, down.out});
  });
}

/// Returns the gradient of the raw product, written over `pre` where it has no other owner. Forms the hidden values
/// again and adds the gradient of the down weight to `dweight` and the column sums of the result to `up_dbias`.
Array hidden_backward(const HiddenLayer& layer, const LinearSizes& down, Array pre, const real* up_bias,
                      const Factor& down_weight, const Array& dy, GradSink& dweight, kernels::ColumnSums up_dbias) {
  const real* const read = pre.data();
  const int64_t raw = pre.dim(-1);
  Array dpre = take_or_make(pre);
  real beta = dweight.beta();
  for_each_strip(down.rows, [&](int64_t first, int64_t rows) {
    const LinearSizes sizes{rows, down.in, down.out};
    const Factor d(dy.data() + first * down.out, rows * down.out, down_weight);
    Array hidden = input_grad(d, down_weight, Shape{rows, down.in}, sizes);
    kernels::activation_backward(pass_of(layer, rows), read + first * raw, up_bias, hidden.data(),
                                 dpre.mutable_data() + first * raw, hidden.mutable_data(), up_dbias);
    if (dweight) weight_grad(d, Factor(std::move(hidden), down_weight), dweight.data(), beta, sizes);
    up_dbias.beta = beta = 1;
  });
  return dpre;
}

/// The weights of both layers; a bias may be undefined.
struct Parameters {
  const Var &up_weight, &up_bias, &down_weight, &down_bias;
};
enum Input : size_t { input_x, input_up, input_up_bias, input_down, input_down_bias, input_count };

/// Both ops: up, hidden, down, and the way back.
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
  hidden_forward(layer, down, pre, up_bias.data(), down_weight, p.down_bias ? p.down_bias.value().data() : nullptr,
                 y.mutable_data());

  auto pullback = [layer, up, down, rows, x_shape = x.shape(), up_weight, up_bias, down_weight, pre = std::move(pre)](
                      const Array& dy, const Needs& needs) mutable -> Grads {
    Grads grads(input_count);
    GradSink down_dbias(needs, input_down_bias, Shape{down.out}), up_dbias(needs, input_up_bias, Shape{up.out}),
        down_dweight(needs, input_down, Shape{down.out, down.in});
    kernels::column_sums(dy.data(), {down_dbias.data(), down_dbias.beta()}, down.rows, down.out);
    const Factor dpre(hidden_backward(layer, down, std::move(pre), up_bias.data(), down_weight, dy, down_dweight,
                                      {up_dbias.data(), up_dbias.beta()}),
                      up_weight);
    grads[input_down] = down_dweight.grad();
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
                 Activation activation) {
  return two_layers({"feed_forward", activation, false}, x, {up_weight, up_bias, down_weight, down_bias});
}

Var gated_feed_forward(const Var& x, const Var& up_weight, const Var& up_bias, const Var& down_weight,
                       const Var& down_bias, Activation gate) {
  return two_layers({"gated_feed_forward", gate, true}, x, {up_weight, up_bias, down_weight, down_bias});
}

}  // namespace capstan::CAPSTAN_PRECISION
