// The checks of the norms and what their pullbacks keep: x, and the mean and 1 / deviation of each row. The loops are
// in core/fused/kernels/norm.cpp. dx is written over dy where that has no other owner.

#include "core/fused/norm.hpp"
#include "core/autograd/grad_sink.hpp"
#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "core/fused/kernels/norm.hpp"
#include "core/fused/linear_products.hpp"
#include "core/machine/profile.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

using kernels::NormForm;
using kernels::NormPass;

/// Checks the operands of a norm; the gain and its factor are left to the caller.
NormPass make_pass(const char* op, NormForm kind, const Var& x, const Var& gain, const Var& bias, double eps) {
  check(x.rank() >= 1 && x.dim(-1) >= 1, "{}: x must have a last axis with at least one feature, got shape {}", op,
        x.shape());
  check(eps >= 0, "{}: eps must not be negative, got {}", op, eps);
  const Shape row{x.dim(-1)};
  for (const Var* parameter : {&gain, &bias})
    check(!*parameter || parameter->shape() == row, "{}: gain and bias of x {} must be {}, got shape {}", op, x.shape(),
          row, *parameter ? parameter->shape() : Shape{});
  NormPass pass{kind, x.shape().product(0, x.rank() - 1), x.dim(-1)};
  pass.eps = eps;
  return pass;
}

const real* data_or_null(const Var& var) { return var ? var.value().data() : nullptr; }
Array value_or_none(const Var& var) { return var ? var.value() : Array(); }

/// layer_norm and rms_norm: a gain (and bias) per feature.
Var feature_norm(const char* op, NormForm kind, const Var& x, const Var& gain, const Var& bias, double eps) {
  const ProfileSpan span;
  NormPass pass = make_pass(op, kind, x, gain, bias, eps);
  pass.gain = data_or_null(gain);
  Array y(x.shape()), rstd(Shape{pass.rows}), mean;
  if (kind == NormForm::centred) mean = Array(Shape{pass.rows});
  kernels::norm_forward(pass, data_or_null(bias), x.value().data(), y.mutable_data(),
                        mean.empty() ? nullptr : mean.mutable_data(), rstd.mutable_data());
  return make_var(
      op, std::move(y), {x, gain, bias},
      [xv = x.value(), gain_value = value_or_none(gain), mean, rstd, pass](Array dy, const Needs& needs) -> Grads {
        const Shape row{pass.columns};
        GradSink dgain(needs, 1, row), dbias(needs, 2, row);
        const real* dy_data = dy.data();
        Array dx = needs[0] ? take_or_make(dy) : Array();
        kernels::norm_backward(pass, xv.data(), mean.empty() ? nullptr : mean.data(), rstd.data(), dy_data,
                               needs[0] ? dx.mutable_data() : nullptr, {dgain.data(), dgain.beta()},
                               {dbias.data(), dbias.beta()}, nullptr);
        return {needs[0] ? Grad(std::move(dx)) : Grad(), dgain.grad(), dbias.grad()};
      });
}

}  // namespace

Var layer_norm(const Var& x, const Var& gain, const Var& bias, double eps) {
  return feature_norm("layer_norm", NormForm::centred, x, gain, bias, eps);
}

Var rms_norm(const Var& x, const Var& gain, double eps) {
  return feature_norm("rms_norm", NormForm::rms, x, gain, Var(), eps);
}

Var scale_norm(const Var& x, const Var& gain, double eps) {
  const ProfileSpan span;
  NormPass pass = make_pass("scale_norm", NormForm::rms, x, Var(), Var(), eps);
  check(gain && gain.size() == 1, "scale_norm: the gain must have one element, got shape {}",
        gain ? gain.shape() : Shape{0});
  pass.scale = gain.value()[0];
  Array y(x.shape()), rstd(Shape{pass.rows});
  kernels::norm_forward(pass, nullptr, x.value().data(), y.mutable_data(), nullptr, rstd.mutable_data());
  return make_var("scale_norm", std::move(y), {x, gain},
                  [xv = x.value(), gain_shape = gain.shape(), rstd, pass](Array dy, const Needs& needs) -> Grads {
                    const real* dy_data = dy.data();
                    Array dx = needs[0] ? take_or_make(dy) : Array(), dots(Shape{pass.rows});
                    kernels::norm_backward(pass, xv.data(), nullptr, rstd.data(), dy_data,
                                           needs[0] ? dx.mutable_data() : nullptr, {}, {}, dots.mutable_data());
                    double dgain = 0;
                    for (int64_t row = 0; row < pass.rows; ++row) dgain += dots[row];
                    return {needs[0] ? Grad(std::move(dx)) : Grad(), Grad(Array(gain_shape, static_cast<real>(dgain)))};
                  });
}

}  // namespace capstan::CAPSTAN_PRECISION
