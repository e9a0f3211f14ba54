#include "core/ops/math.hpp"

#include "core/array/rows_xt.hpp"
#include "core/base/error.hpp"
#include "core/machine/profile.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

Array product(const Array& a, const Array& b, const char* op) {
  return combine(op, a, b, [](const auto& x, const auto& y) { return x * y; });
}
Array quotient(const Array& a, const Array& b, const char* op) {
  return combine(op, a, b, [](const auto& x, const auto& y) { return x / y; });
}
Array negative(const Array& x) {
  return map(x, [](const auto& v) { return -v; });
}

/// out = f(a, b) number by number, with broadcasting: for comparisons, which xtensor does not vectorise as numbers. It
/// is called with each step known at compile time.
template <class F>
Array compare(const char* op, const Array& a, const Array& b, const F& f) {
  Array out(broadcast_shapes(a.shape(), b.shape(), op));
  real* const y = out.mutable_data();
  const RowPlan plan = plan_rows(out.shape(), {a.shape(), b.shape()});
  parallel_rows(plan, [&](int64_t at, const RowPlan::Offsets& offsets, int64_t count) {
    const real* const left = a.data() + offsets[0];
    const real* const right = b.data() + offsets[1];
    real* const row = y + at;
    if (plan.step[0] == 0) {
      const real value = *left;
      for (int64_t i = 0; i < count; ++i) row[i] = f(value, right[i]);
    } else if (plan.step[1] == 0) {
      const real value = *right;
      for (int64_t i = 0; i < count; ++i) row[i] = f(left[i], value);
    } else {
      for (int64_t i = 0; i < count; ++i) row[i] = f(left[i], right[i]);
    }
  });
  return out;
}

/// mask ? a : b with broadcasting; a missing operand is 0.
Array select(const Shape& shape, const Array& mask, const Array* a, const Array* b) {
  static const real zero = 0;
  Array out(shape);
  real* const y = out.mutable_data();
  const RowPlan plan = plan_rows(shape, {mask.shape(), a ? a->shape() : Shape{}, b ? b->shape() : Shape{}});
  const bool contiguous = plan.step[0] == 1 && plan.step[1] == 1 && plan.step[2] == 1 && a && b;
  const auto step = plan.step;
  parallel_rows(plan, [&](int64_t at, const RowPlan::Offsets& offsets, int64_t count) {
    const real* const m = mask.data() + offsets[0];
    const real* const left = a ? a->data() + offsets[1] : &zero;
    const real* const right = b ? b->data() + offsets[2] : &zero;
    const int64_t left_step = a ? step[1] : 0, right_step = b ? step[2] : 0;
    real* const row = y + at;
    if (contiguous) {
      for (int64_t i = 0; i < count; ++i) row[i] = m[i] != 0 ? left[i] : right[i];
    } else {
      for (int64_t i = 0; i < count; ++i) row[i] = m[i * step[0]] != 0 ? left[i * left_step] : right[i * right_step];
    }
  });
  return out;
}

/// The pullback of a choice between a and b: g where `mask` is not 0 goes to a, the rest to b.
Grads choice_grads(const Array& g, const Array& mask, bool needs_a, bool needs_b) {
  Grads grads(2);
  if (needs_a) grads[0] = select(g.shape(), mask, &g, nullptr);
  if (needs_b) grads[1] = select(g.shape(), mask, nullptr, &g);
  return grads;
}

}  // namespace

Var add(const Var& a, const Var& b) {
  const ProfileSpan span;
  Array y = combine("add", a.value(), b.value(), [](const auto& u, const auto& v) { return u + v; });
  return make_var("add", std::move(y), {a, b}, [](const Array& g, const Needs&) -> Grads {
    declare_traffic(0);
    return {g, g};
  });
}

Var sub(const Var& a, const Var& b) {
  const ProfileSpan span;
  Array y = combine("sub", a.value(), b.value(), [](const auto& u, const auto& v) { return u - v; });
  return make_var("sub", std::move(y), {a, b}, [](const Array& g, const Needs& needs) -> Grads {
    Grads grads(2);
    if (needs[1]) grads[1] = negative(g);
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
                    if (needs[1]) grads[1] = zip(negative(da), y, [](const auto& u, const auto& v) { return u * v; });
                    if (needs[0]) grads[0] = std::move(da);
                    return grads;
                  });
}

Var maximum(const Var& a, const Var& b) {
  const ProfileSpan span;
  // A NaN on either side is the result, so that it is not hidden.
  Array y = compare("maximum", a.value(), b.value(), [](real u, real v) { return u >= v || u != u ? u : v; });
  return make_var("maximum", std::move(y), {a, b}, [a = a.value(), b = b.value()](const Array& g, const Needs& needs) {
    return choice_grads(g, mask_greater_equal(a, b), needs[0], needs[1]);
  });
}

Var minimum(const Var& a, const Var& b) {
  const ProfileSpan span;
  Array y = compare("minimum", a.value(), b.value(), [](real u, real v) { return u <= v || u != u ? u : v; });
  return make_var("minimum", std::move(y), {a, b}, [a = a.value(), b = b.value()](const Array& g, const Needs& needs) {
    return choice_grads(g, mask_less_equal(a, b), needs[0], needs[1]);
  });
}

Var where(const Array& mask, const Var& a, const Var& b) {
  const ProfileSpan span;
  const Shape shape = broadcast_shapes(mask.shape(), broadcast_shapes(a.shape(), b.shape(), "where"), "where");
  Array y = select(shape, mask, &a.value(), &b.value());
  return make_var("where", std::move(y), {a, b},
                  [mask](const Array& g, const Needs& needs) { return choice_grads(g, mask, needs[0], needs[1]); });
}

Array mask_greater(const Array& a, const Array& b) {
  return compare("mask_greater", a, b, [](real u, real v) { return real(u > v); });
}
Array mask_greater_equal(const Array& a, const Array& b) {
  return compare("mask_greater_equal", a, b, [](real u, real v) { return real(u >= v); });
}
Array mask_less(const Array& a, const Array& b) {
  return compare("mask_less", a, b, [](real u, real v) { return real(u < v); });
}
Array mask_less_equal(const Array& a, const Array& b) {
  return compare("mask_less_equal", a, b, [](real u, real v) { return real(u <= v); });
}
Array mask_equal(const Array& a, const Array& b) {
  return compare("mask_equal", a, b, [](real u, real v) { return real(u == v); });
}

}  // namespace capstan::CAPSTAN_PRECISION
