// softmax(), a row at a time: the largest visible element is taken off, exponentials come from core/kernels, and the
// sum is in double. Attention has a softmax of its own (nn/systems/quadratic); this one serves poolings, probabilities
// and the composed forms.
#include "core/ops/softmax.hpp"

#include <cmath>
#include <limits>

#include "core/array/rows_xt.hpp"
#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "core/kernels/activation.hpp"
#include "core/kernels/elementwise.hpp"
#include "core/machine/profile.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

constexpr real infinity = std::numeric_limits<real>::infinity();

/// How a mask is laid over the rows of x.
struct RowMask {
  Array mask;  // empty: none
  RowPlan plan;
};

RowMask row_mask(const Shape& x, const Array* mask) {
  check(x.rank() >= 1, "softmax: need rank >= 1, got shape {}", x);
  if (mask == nullptr) return {Array(), plan_rows(x, {x}, /*rows_stay=*/true)};
  check(broadcast_shapes(mask->shape(), x, "softmax") == x, "softmax: a mask of shape {} does not broadcast to {}",
        mask->shape(), x);
  return {*mask, plan_rows(x, {mask->shape()}, /*rows_stay=*/true)};
}

/// body(offset of the row, its mask or null), split among the threads; rows that are hidden as a whole are left out.
template <class Body>
void for_each_row(const RowMask& rows, const Body& body) {
  const int64_t length = rows.plan.length;
  if (length == 0) return;
  parallel_for(rows.plan.rows, 1 + elementwise_grain / (4 * length), [&](int64_t begin, int64_t end) {
    walk_rows(rows.plan, begin, end, [&](int64_t at, const RowPlan::Offsets& offsets) {
      const real* const mask = rows.mask.empty() ? nullptr : rows.mask.data() + offsets[0];
      const bool whole = rows.plan.step[0] == 0;  // one value for the whole row
      if (mask != nullptr && whole && *mask == 0) return;
      body(at, whole ? nullptr : mask);
    });
  });
}

/// x, and -infinity where the mask (null: none) is 0.
void write_visible(real* out, const real* x, const real* mask, int64_t count) {
  auto y = as_row(out, count);
  if (mask == nullptr) return assign_row(y, as_row(x, count));
  assign_row(y, xt::where(xt::not_equal(as_row(mask, count), real(0)), as_row(x, count), -infinity));
}

/// y_i = e^(x_i - m) / sum_j e^(x_j - m), m = max x; 0 where nothing is visible.
void softmax_row(real* out, const real* x, const real* mask, int64_t count) {
  write_visible(out, x, mask, count);
  auto y = as_row(out, count);
  const real largest = xt::amax(y)();  // taken off, it keeps e^x from overflowing
  assign_row(y, y - (std::isfinite(largest) ? largest : 0));
  kernels::apply(kernels::Function::exp, out, out, count);
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

/// softmax() with a mask, or null.
Var softmax_over(const Var& x, const Array* mask) {
  const ProfileSpan span;
  const RowMask rows = row_mask(x.shape(), mask);
  Array y(x.shape());
  if (mask != nullptr && rows.plan.step[0] == 0) kernels::fill(y.mutable_data(), y.size(), 0);  // rows may be left out
  for_each_row(rows, [&, out = y.mutable_data()](int64_t at, const real* row) {
    softmax_row(out + at, x.value().data() + at, row, rows.plan.length);
  });
  // y is 0 where the mask is, so the pullback needs no mask.
  return make_var("softmax", y, {x}, [y, plan = row_mask(x.shape(), nullptr)](const Array& g, const Needs&) -> Grads {
    Array dx(y.shape());
    for_each_row(plan, [&, out = dx.mutable_data()](int64_t at, const real*) {
      softmax_row_grad(out + at, g.data() + at, y.data() + at, plan.plan.length);
    });
    return {dx};
  });
}

}  // namespace

Var softmax(const Var& x) { return softmax_over(x, nullptr); }
Var softmax(const Var& x, const Array& mask) { return softmax_over(x, &mask); }

}  // namespace capstan::CAPSTAN_PRECISION
