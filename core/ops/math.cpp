#include "core/ops/math.hpp"

#include <functional>

#include "core/array/rows_xt.hpp"
#include "core/machine/profile.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

Array product(Array a, const Array& b, const char* op) { return elementwise(op, std::multiplies<>(), std::move(a), b); }
Array quotient(Array a, const Array& b, const char* op) { return elementwise(op, std::divides<>(), std::move(a), b); }
Array negative(Array x, const char* op) { return elementwise(op, std::negate<>(), std::move(x)); }

/// mask ? a : b.
Array chosen(const Array& mask, const Array& a, const Array& b, const char* op) {
  return elementwise(
      op, [](const auto& m, const auto& u, const auto& v) { return xt::where(xt::not_equal(m, real(0)), u, v); }, mask,
      a, b);
}

/// The pullback of a choice between a and b: g goes to a where `mask` is not 0, to b elsewhere.
Grads choice_grads(const char* op, const Array& g, const Array& mask, const Needs& needs) {
  const Array zero = Array::scalar(0);
  Grads grads(2);
  if (needs[0]) grads[0] = chosen(mask, g, zero, op);
  if (needs[1]) grads[1] = chosen(mask, zero, g, op);
  return grads;
}

}  // namespace

Var add(const Var& a, const Var& b) {
  const ProfileSpan span;
  Array y = elementwise("add", std::plus<>(), a.value(), b.value());
  return make_var("add", std::move(y), {a, b}, [](const Array& g, const Needs&) -> Grads {
    declare_traffic(0);
    return {g, g};
  });
}

Var sub(const Var& a, const Var& b) {
  const ProfileSpan span;
  Array y = elementwise("sub", std::minus<>(), a.value(), b.value());
  return make_var("sub", std::move(y), {a, b}, [](const Array& g, const Needs& needs) -> Grads {
    Grads grads(2);
    if (needs[1]) grads[1] = negative(g, "sub");
    if (needs[0]) grads[0] = g;
    return grads;
  });
}

Var mul(const Var& a, const Var& b) {
  const ProfileSpan span;
  Array y = product(a.value(), b.value(), "mul");
  // Each operand is saved only for the other's gradient.
  return make_var("mul", std::move(y), {a, b},
                  [av = b.needs_grad() ? a.value() : Array(), bv = a.needs_grad() ? b.value() : Array()](
                      const Array& g, const Needs& needs) -> Grads {
                    Grads grads(2);
                    if (needs[0]) grads[0] = product(g, bv, "mul");
                    if (needs[1]) grads[1] = product(g, av, "mul");
                    return grads;
                  });
}

Var div(const Var& a, const Var& b) {
  const ProfileSpan span;
  Array y = quotient(a.value(), b.value(), "div");
  return make_var("div", y, {a, b},
                  [bv = b.value(), y = b.needs_grad() ? y : Array()](const Array& g, const Needs& needs) -> Grads {
                    Grads grads(2);
                    Array da = quotient(g, bv, "div");
                    if (needs[1]) grads[1] = product(negative(da, "div"), y, "div");
                    if (needs[0]) grads[0] = std::move(da);
                    return grads;
                  });
}

// A NaN in either operand of maximum is the result, as u + v: xtensor's function of this name hides some.
Var maximum(const Var& a, const Var& b) {
  const ProfileSpan span;
  const auto larger = [](const auto& u, const auto& v) { return xt::where(u >= v, u, xt::where(u < v, v, u + v)); };
  Array y = elementwise("maximum", larger, a.value(), b.value());
  return make_var("maximum", std::move(y), {a, b}, [a = a.value(), b = b.value()](const Array& g, const Needs& needs) {
    return choice_grads("maximum", g, mask_greater_equal(a, b), needs);
  });
}

Var where(const Array& mask, const Var& a, const Var& b) {
  const ProfileSpan span;
  return make_var("where", chosen(mask, a.value(), b.value(), "where"), {a, b},
                  [mask](const Array& g, const Needs& needs) { return choice_grads("where", g, mask, needs); });
}

Array mask_greater(const Array& a, const Array& b) { return elementwise("mask_greater", std::greater<>(), a, b); }

Array mask_greater_equal(const Array& a, const Array& b) {
  return elementwise("mask_greater_equal", std::greater_equal<>(), a, b);
}

}  // namespace capstan::CAPSTAN_PRECISION
