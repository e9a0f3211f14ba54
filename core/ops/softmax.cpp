#include "core/ops/softmax.hpp"

#include <cmath>
#include <limits>

#include "core/array/rows_xt.hpp"
#include "core/base/error.hpp"
#include "core/kernels/elementwise.hpp"
#include "core/machine/profile.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

constexpr real infinity = std::numeric_limits<real>::infinity();

/// How a mask is laid over the rows of x.
struct RowMask {
  Array mask;
  RowPlan plan;
  bool present = false;
};

RowMask row_mask(const char* op, const Shape& x, const Array* mask) {
  check(x.rank() >= 1, "{}: need rank >= 1, got shape {}", op, x);
  if (mask == nullptr) return {Array(), plan_rows(x, {x}, /*rows_stay=*/true), false};
  check(broadcast_shapes(mask->shape(), x, op) == x, "{}: a mask of shape {} does not broadcast to {}", op,
        mask->shape(), x);
  return {*mask, plan_rows(x, {mask->shape()}, /*rows_stay=*/true), true};
}

/// body(offset of the row, its mask or null), split among the threads; rows that are hidden as a whole are left out.
template <class Body>
void for_each_row(const RowMask& rows, const Body& body) {
  const int64_t length = rows.plan.length;
  if (length == 0) return;
  parallel_for(rows.plan.rows, 1 + elementwise_grain / (4 * length), [&](int64_t begin, int64_t end) {
    walk_rows(rows.plan, begin, end, [&](int64_t at, const RowPlan::Offsets& offsets) {
      const real* const mask = rows.present ? rows.mask.data() + offsets[0] : nullptr;
      const bool whole = rows.plan.step[0] == 0;  // one value for the whole row
      if (mask != nullptr && whole && *mask == 0) return;
      body(at, whole ? nullptr : mask);
    });
  });
}

/// An array of zeros where rows may be skipped.
Array result_for(const RowMask& rows, const Shape& shape) {
  Array y(shape);
  if (rows.present && rows.plan.step[0] == 0) kernels::fill(y.mutable_data(), y.size(), 0);
  return y;
}

/// x, and -infinity where the mask (null: none) is 0.
void write_visible(real* out, const real* x, const real* mask, int64_t count) {
  auto y = as_row(out, count);
  if (mask == nullptr) return assign_row(y, as_row(x, count));
  assign_row(y, xt::where(xt::not_equal(as_row(mask, count), real(0)), as_row(x, count), -infinity));
}

/// max x, which keeps e^(x - max x) from overflowing; 0 where it is infinite or NaN.
template <class Row>
real reference(const Row& x) {
  const real largest = xt::amax(x)();
  return std::isfinite(largest) ? largest : 0;
}

/// y_i = e^(x_i - m) / sum_j e^(x_j - m), m = max x; 0 where nothing is visible.
void softmax_row(real* out, const real* x, const real* mask, int64_t count) {
  write_visible(out, x, mask, count);
  auto y = as_row(out, count);
  assign_row(y, xt::exp(y - reference(y)));
  const double sum = xt::sum<double>(y)();
  assign_row(y, y * static_cast<real>(sum == 0 ? 0 : 1 / sum));
}

/// dx = y (g - sum(g y))
void softmax_row_grad(real* out, const real* dy, const real* value, int64_t count) {
  auto dx = as_row(out, count);
  const auto g = as_row(dy, count), y = as_row(value, count);
  const auto dot = static_cast<real>(xt::sum<double>(g * y)());
  assign_row(dx, y * (g - dot));
}

/// y_i = x_i - m - log sum_j e^(x_j - m), m = max x; 0 where the mask is 0.
void log_softmax_row(real* out, const real* x, const real* mask, int64_t count) {
  write_visible(out, x, mask, count);
  auto y = as_row(out, count);
  const real m = reference(y);
  const double sum = xt::sum<double>(xt::exp(y - m))();
  if (sum == 0) return assign_row(y, xt::zeros_like(y));
  const auto log_sum = static_cast<real>(std::log(sum));
  // m first: where x is large, m + log_sum would round the logarithm away.
  assign_row(y, (y - m) - log_sum);
  if (mask != nullptr) assign_row(y, xt::where(xt::not_equal(as_row(mask, count), real(0)), y, real(0)));
}

/// dx = g - e^y sum(g), over the elements that take part.
void log_softmax_row_grad(real* out, const real* dy, const real* value, const real* mask, int64_t count) {
  auto dx = as_row(out, count);
  const auto y = as_row(value, count);
  assign_row(dx, as_row(dy, count));
  if (mask != nullptr) assign_row(dx, xt::where(xt::not_equal(as_row(mask, count), real(0)), dx, real(0)));
  // A row has no logarithm below 0 only where at most one element is visible; its gradient is 0.
  const auto sum = static_cast<real>(xt::sum<double>(dx)());
  if (xt::sum<double>(y)() == 0) return assign_row(dx, xt::zeros_like(dx));
  assign_row(dx, dx - xt::exp(y) * sum);
  if (mask != nullptr) assign_row(dx, xt::where(xt::not_equal(as_row(mask, count), real(0)), dx, real(0)));
}

Var softmax_over(const Var& x, const Array* mask) {
  const ProfileSpan span;
  const RowMask rows = row_mask("softmax", x.shape(), mask);
  Array y = result_for(rows, x.shape());
  for_each_row(rows, [&, out = y.mutable_data()](int64_t at, const real* row) {
    softmax_row(out + at, x.value().data() + at, row, rows.plan.length);
  });
  // y is 0 where the mask is, so the pullback needs no mask.
  return make_var("softmax", y, {x},
                  [y, plan = row_mask("softmax", x.shape(), nullptr)](const Array& g, const Needs&) -> Grads {
                    Array dx(y.shape());
                    for_each_row(plan, [&, out = dx.mutable_data()](int64_t at, const real*) {
                      softmax_row_grad(out + at, g.data() + at, y.data() + at, plan.plan.length);
                    });
                    return {dx};
                  });
}

Var log_softmax_over(const Var& x, const Array* mask) {
  const ProfileSpan span;
  const RowMask rows = row_mask("log_softmax", x.shape(), mask);
  Array y = result_for(rows, x.shape());
  for_each_row(rows, [&, out = y.mutable_data()](int64_t at, const real* row) {
    log_softmax_row(out + at, x.value().data() + at, row, rows.plan.length);
  });
  return make_var("log_softmax", y, {x}, [y, rows](const Array& g, const Needs&) -> Grads {
    Array dx = result_for(rows, y.shape());
    for_each_row(rows, [&, out = dx.mutable_data()](int64_t at, const real* row) {
      log_softmax_row_grad(out + at, g.data() + at, y.data() + at, row, rows.plan.length);
    });
    return {dx};
  });
}

}  // namespace

Var softmax(const Var& x) { return softmax_over(x, nullptr); }
Var softmax(const Var& x, const Array& mask) { return softmax_over(x, &mask); }
Var log_softmax(const Var& x) { return log_softmax_over(x, nullptr); }
Var log_softmax(const Var& x, const Array& mask) { return log_softmax_over(x, &mask); }

}  // namespace capstan::CAPSTAN_PRECISION
