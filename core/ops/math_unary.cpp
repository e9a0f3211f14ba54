// Element-wise functions of one operand. exp, log, sigmoid and tanh come from core/kernels, whose bits no library
// decides; the others, but for gelu and erf, are exact expressions. A pullback saves the input or the output, whichever
// its slope is made of, and writes over the gradient that it is given where that has no other owner.

#include "core/array/rows_xt.hpp"
#include "core/autograd/tape.hpp"
#include "core/kernels/activation.hpp"
#include "core/machine/profile.hpp"
#include "core/ops/math.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

enum class Saves { input, output };

/// y of x, and dx = df(g, saved).
template <class Backward>
Var with_pullback(const char* op, const Var& x, Array y, Saves saves, const Backward& df) {
  const Array saved = saves == Saves::input ? x.value() : y;
  return make_var(op, std::move(y), {x}, [op, saved, df](Array g, const Needs&) -> Grads {
    return {elementwise(op, df, std::move(g), saved)};
  });
}

/// y = f(x), an expression of exact operations.
template <class Forward, class Backward>
Var unary(const char* op, const Var& x, Saves saves, const Forward& f, const Backward& df) {
  const ProfileSpan span;
  return with_pullback(op, x, elementwise(op, f, x.value()), saves, df);
}

Array computed(const char* op, kernels::Function function, const Array& x) {
  return compute_rows(op, x, {}, [function](real* out, const RowOperands& in, int64_t count) {
    kernels::apply(function, out, in[0], count);
  });
}

template <class Backward>
Var unary(const char* op, const Var& x, Saves saves, kernels::Function function, const Backward& df) {
  const ProfileSpan span;
  return with_pullback(op, x, computed(op, function, x.value()), saves, df);
}

constexpr real inv_sqrt2 = real(0.707106781186547524);
constexpr real inv_sqrt_2pi = real(0.398942280401432678);
constexpr real two_over_sqrt_pi = real(1.12837916709551257);

}  // namespace

Var add_scalar(const Var& x, double s) {
  const ProfileSpan span;
  Array y = elementwise(
      "add_scalar", [s = real(s)](const auto& v) { return v + s; }, x.value());
  return make_var("add_scalar", std::move(y), {x}, [](const Array& g, const Needs&) -> Grads {
    declare_traffic(0);
    return {g};
  });
}

Var mul_scalar(const Var& x, double s) {
  const ProfileSpan span;
  const auto scaled = [s = real(s)](Array v) {
    return elementwise(
        "mul_scalar", [s](const auto& u) { return u * s; }, std::move(v));
  };
  return make_var("mul_scalar", scaled(x.value()), {x},
                  [scaled](Array g, const Needs&) -> Grads { return {scaled(std::move(g))}; });
}

Var neg(const Var& x) {
  const ProfileSpan span;
  const auto negated = [](Array v) { return elementwise("neg", std::negate<>(), std::move(v)); };
  return make_var("neg", negated(x.value()), {x},
                  [negated](Array g, const Needs&) -> Grads { return {negated(std::move(g))}; });
}

Var exp(const Var& x) {
  return unary("exp", x, Saves::output, kernels::Function::exp, [](const auto& g, const auto& y) { return g * y; });
}

Var log(const Var& x) {
  return unary("log", x, Saves::input, kernels::Function::log, [](const auto& g, const auto& v) { return g / v; });
}

Var sqrt(const Var& x) {
  return unary(
      "sqrt", x, Saves::output, [](const auto& v) { return xt::sqrt(v); },
      [](const auto& g, const auto& y) { return g / (real(2) * y); });
}

Var square(const Var& x) {
  return unary(
      "square", x, Saves::input, [](const auto& v) { return v * v; },
      [](const auto& g, const auto& v) { return real(2) * g * v; });
}

Var tanh(const Var& x) {
  return unary("tanh", x, Saves::output, kernels::Function::tanh,
               [](const auto& g, const auto& y) { return g * (real(1) - y * y); });
}

Var sigmoid(const Var& x) {
  return unary("sigmoid", x, Saves::output, kernels::Function::sigmoid,
               [](const auto& g, const auto& s) { return g * s * (real(1) - s); });
}

Var silu(const Var& x) {
  const ProfileSpan span;
  Array y = elementwise(
      "silu", [](const auto& s, const auto& v) { return s * v; },
      computed("silu", kernels::Function::sigmoid, x.value()), x.value());
  return make_var("silu", std::move(y), {x}, [x = x.value()](Array g, const Needs&) -> Grads {
    // In two passes, so that the exponential is taken once.
    const Array s = computed("silu", kernels::Function::sigmoid, x);
    const auto grad = [](const auto& dy, const auto& u, const auto& v) {
      return dy * (u * (real(1) + v * (real(1) - u)));
    };
    return {elementwise("silu", grad, std::move(g), s, x)};
  });
}

// Only nn/systems/quadratic/composed.cpp uses erf, and only tests use gelu: the bits of both are those of xtensor and
// its CPU, so models take Activation::gelu and the like from kernels.
Var gelu(const Var& x) {
  return unary(
      "gelu", x, Saves::input, [](const auto& v) { return real(0.5) * v * (real(1) + xt::erf(v * inv_sqrt2)); },
      [](const auto& g, const auto& v) {
        return g * (real(0.5) * (real(1) + xt::erf(v * inv_sqrt2)) + v * (inv_sqrt_2pi * xt::exp(real(-0.5) * v * v)));
      });
}

Var erf(const Var& x) {
  return unary(
      "erf", x, Saves::input, [](const auto& v) { return xt::erf(v); },
      [](const auto& g, const auto& v) { return g * (two_over_sqrt_pi * xt::exp(-(v * v))); });
}

// max(x, 0) by a comparison that keeps NaN: xtensor's maximum hides some.
Var relu(const Var& x) {
  return unary(
      "relu", x, Saves::input, [](const auto& v) { return xt::where(v <= real(0), real(0), v); },
      [](const auto& g, const auto& v) { return xt::where(v > real(0), g, real(0)); });
}

Var squared_relu(const Var& x) {
  return unary(
      "squared_relu", x, Saves::input, [](const auto& v) { return xt::where(v <= real(0), real(0), v * v); },
      [](const auto& g, const auto& v) { return xt::where(v > real(0), real(2) * g * v, real(0)); });
}

}  // namespace capstan::CAPSTAN_PRECISION
