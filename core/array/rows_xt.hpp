// xtensor expressions along rows: element-wise ops are written as expressions, vectorised by xsimd, over operands of
// rank 1. Heavy: include it in source files only.
#pragma once

#include "core/array/array_xt.hpp"
#include "core/array/rows.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// `count` contiguous numbers as an xtensor of rank 1.
template <class T>
auto as_row(T* data, int64_t count) {
  const auto extent = static_cast<size_t>(count);
  return xt::adapt(data, extent, xt::no_ownership(), std::array<size_t, 1>{extent});
}

/// out = f(x), f from an expression to an expression.
template <class F>
Array map(const Array& x, const F& f) {
  Array out(x.shape());
  real* const y = out.mutable_data();
  const RowPlan plan = plan_rows(x.shape(), {x.shape()});
  parallel_rows(plan, [&](int64_t at, const RowPlan::Offsets&, int64_t count) {
    const auto input = as_row(x.data() + at, count);
    auto output = as_row(y + at, count);
    xt::noalias(output) = f(input);
  });
  return out;
}

/// out = f(g, x) for two arrays of one shape; written into g where it is the caller's alone.
template <class F>
Array zip(Array g, const Array& x, const F& f) {
  const real* const left = g.data();
  Array out = g.unique() ? std::move(g) : Array(x.shape());
  real* const y = out.mutable_data();
  const RowPlan plan = plan_rows(x.shape(), {x.shape()});
  parallel_rows(plan, [&](int64_t at, const RowPlan::Offsets&, int64_t count) {
    const auto a = as_row(left + at, count);
    const auto b = as_row(x.data() + at, count);
    auto output = as_row(y + at, count);
    xt::noalias(output) = f(a, b);
  });
  return out;
}

/// out = f(a, b) with broadcasting; along a row each operand is an expression or a number.
template <class F>
Array combine(const char* op, const Array& a, const Array& b, const F& f) {
  Array out(broadcast_shapes(a.shape(), b.shape(), op));
  real* const y = out.mutable_data();
  const RowPlan plan = plan_rows(out.shape(), {a.shape(), b.shape()});
  parallel_rows(plan, [&](int64_t at, const RowPlan::Offsets& offsets, int64_t count) {
    const real* const left = a.data() + offsets[0];
    const real* const right = b.data() + offsets[1];
    auto output = as_row(y + at, count);
    if (plan.step[0] == 0) {
      const auto vector = as_row(right, count);
      xt::noalias(output) = f(*left, vector);
    } else if (plan.step[1] == 0) {
      const auto vector = as_row(left, count);
      xt::noalias(output) = f(vector, *right);
    } else {
      const auto first = as_row(left, count), second = as_row(right, count);
      xt::noalias(output) = f(first, second);
    }
  });
  return out;
}

}  // namespace capstan::CAPSTAN_PRECISION
