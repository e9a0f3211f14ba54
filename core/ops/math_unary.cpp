#include "core/array/rows_xt.hpp"
#include "core/machine/profile.hpp"
#include "core/ops/math.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

enum class Saves { input, output };

/// y = f(x), dx = df(g, saved).
template <class Forward, class Backward>
Var unary(const char* op, const Var& x, Saves saves, const Forward& f, const Backward& df) {
  const ProfileSpan span;
  Array y = map(x.value(), f);
  const Array saved = saves == Saves::input ? x.value() : y;
  return make_var(op, std::move(y), {x},
                  [saved, df](Array g, const Needs&) -> Grads { return {zip(std::move(g), saved, df)}; });
}

Array logistic(const Array& x) {
  // e^-x may overflow to infinity; its reciprocal is then the right 0.
  return map(x, [](const auto& v) { return real(1) / (real(1) + xt::exp(-v)); });
}

/// max(x, 0), with NaN kept: xtensor's maximum would hide it or not, depending on the place.
template <class F>
Array rectified(const Array& x, const F& f) {
  Array y(x.shape());
  parallel_for(x.size(), elementwise_grain, [&f, in = x.data(), out = y.mutable_data()](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = in[i] <= 0 ? 0 : f(in[i]);
  });
  return y;
}

/// df(g, x) where x > 0, else 0.
template <class F>
Array rectified_grad(const Array& g, const Array& x, const F& df) {
  Array dx(x.shape());
  parallel_for(x.size(), elementwise_grain,
               [&df, dy = g.data(), in = x.data(), out = dx.mutable_data()](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) out[i] = in[i] > 0 ? df(dy[i], in[i]) : 0;
               });
  return dx;
}

constexpr real inv_sqrt2 = real(0.707106781186547524);
constexpr real inv_sqrt_2pi = real(0.398942280401432678);
constexpr real two_over_sqrt_pi = real(1.12837916709551257);

}  // namespace

Var add_scalar(const Var& x, double s) {
  const ProfileSpan span;
  Array y = map(x.value(), [s = real(s)](const auto& v) { return v + s; });
  return make_var("add_scalar", std::move(y), {x}, [](const Array& g, const Needs&) -> Grads {
    declare_traffic(0);
    return {g};
  });
}

Var mul_scalar(const Var& x, double s) {
  const ProfileSpan span;
  const auto times = [s = real(s)](const auto& v) { return v * s; };
  return make_var("mul_scalar", map(x.value(), times), {x},
                  [times](const Array& g, const Needs&) -> Grads { return {map(g, times)}; });
}

Var neg(const Var& x) {
  const ProfileSpan span;
  const auto minus = [](const auto& v) { return -v; };
  return make_var("neg", map(x.value(), minus), {x},
                  [minus](const Array& g, const Needs&) -> Grads { return {map(g, minus)}; });
}

Var exp(const Var& x) {
  return unary(
      "exp", x, Saves::output, [](const auto& v) { return xt::exp(v); },
      [](const auto& g, const auto& y) { return g * y; });
}

Var log(const Var& x) {
  return unary(
      "log", x, Saves::input, [](const auto& v) { return xt::log(v); },
      [](const auto& g, const auto& v) { return g / v; });
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
  return unary(
      "tanh", x, Saves::output, [](const auto& v) { return xt::tanh(v); },
      [](const auto& g, const auto& y) { return g * (real(1) - y * y); });
}

Var sigmoid(const Var& x) {
  const ProfileSpan span;
  Array y = logistic(x.value());
  return make_var("sigmoid", y, {x}, [y](Array g, const Needs&) -> Grads {
    return {zip(std::move(g), y, [](const auto& dy, const auto& s) { return dy * s * (real(1) - s); })};
  });
}

Var silu(const Var& x) {
  const ProfileSpan span;
  Array y = map(x.value(), [](const auto& v) { return v / (real(1) + xt::exp(-v)); });
  return make_var("silu", std::move(y), {x}, [x = x.value()](Array g, const Needs&) -> Grads {
    // In two passes, so that the exponential is taken once: slope = s (1 + x (1 - s)), then g * slope.
    Array slope = zip(logistic(x), x, [](const auto& s, const auto& v) { return s * (real(1) + v * (real(1) - s)); });
    return {zip(std::move(g), slope, [](const auto& dy, const auto& d) { return dy * d; })};
  });
}

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

Var relu(const Var& x) {
  const ProfileSpan span;
  Array y = rectified(x.value(), [](real v) { return v; });
  return make_var("relu", std::move(y), {x}, [x = x.value()](const Array& g, const Needs&) -> Grads {
    return {rectified_grad(g, x, [](real dy, real) { return dy; })};
  });
}

Var squared_relu(const Var& x) {
  const ProfileSpan span;
  Array y = rectified(x.value(), [](real v) { return v * v; });
  return make_var("squared_relu", std::move(y), {x}, [x = x.value()](const Array& g, const Needs&) -> Grads {
    return {rectified_grad(g, x, [](real dy, real v) { return 2 * dy * v; })};
  });
}

}  // namespace capstan::CAPSTAN_PRECISION
