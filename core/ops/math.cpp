// Element-wise ops of two operands, as xtensor expressions over broadcast rows (core/array/rows_xt). An operand is
// saved only where a gradient needs it; sums over broadcast axes are the tape's. tests/core/ops/gradcheck_ops.cpp.
#include "core/ops/math.hpp"

#include <functional>

#include "core/array/rows_xt.hpp"
#include "core/autograd/tape.hpp"
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

Var where(const Array& mask, const Var& a, const Var& b) {
  const ProfileSpan span;
  return make_var("where", chosen(mask, a.value(), b.value(), "where"), {a, b},
                  [mask](const Array& g, const Needs& needs) -> Grads {
                    const Array zero = Array::scalar(0);
                    Grads grads(2);
                    if (needs[0]) grads[0] = chosen(mask, g, zero, "where");
                    if (needs[1]) grads[1] = chosen(mask, zero, g, "where");
                    return grads;
                  });
}

}  // namespace capstan::CAPSTAN_PRECISION
