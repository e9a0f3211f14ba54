#include "core/ops/softmax.hpp"

#include "core/array/rows.hpp"
#include "core/base/error.hpp"
#include "core/kernels/elementwise.hpp"
#include "core/kernels/softmax.hpp"
#include "core/machine/profile.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// How a mask is laid over the rows of x. An empty plan stands for no mask.
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

/// body(offset of the row, its mask or null), split among the threads; a row that is hidden as a whole is left as it
/// is.
template <class Body>
void for_each_row(const RowMask& rows, const Body& body) {
  const int64_t length = rows.plan.length;
  if (length == 0) return;
  parallel_for(rows.plan.rows, 1 + elementwise_grain / (4 * length), [&](int64_t begin, int64_t end) {
    walk_rows(rows.plan, begin, end, [&](int64_t at, const RowPlan::Offsets& offsets) {
      const real* const mask = rows.present ? rows.mask.data() + offsets[0] : nullptr;
      const bool whole = rows.plan.step[0] == 0;  // one number for the whole row
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

Var softmax_over(const Var& x, const Array* mask) {
  const ProfileSpan span;
  const RowMask rows = row_mask("softmax", x.shape(), mask);
  const int64_t length = rows.plan.length;
  Array y = result_for(rows, x.shape());
  for_each_row(rows, [&, out = y.mutable_data()](int64_t at, const real* row) {
    kernels::softmax_row(out + at, x.value().data() + at, row, length);
  });
  // What was masked has y = 0, so the pullback needs no mask.
  return make_var("softmax", y, {x},
                  [y, plan = row_mask("softmax", x.shape(), nullptr)](const Array& g, const Needs&) -> Grads {
                    Array dx(y.shape());
                    for_each_row(plan, [&, out = dx.mutable_data()](int64_t at, const real*) {
                      kernels::softmax_row_grad(out + at, g.data() + at, y.data() + at, plan.plan.length);
                    });
                    return {dx};
                  });
}

Var log_softmax_over(const Var& x, const Array* mask) {
  const ProfileSpan span;
  const RowMask rows = row_mask("log_softmax", x.shape(), mask);
  Array y = result_for(rows, x.shape());
  for_each_row(rows, [&, out = y.mutable_data()](int64_t at, const real* row) {
    kernels::log_softmax_row(out + at, x.value().data() + at, row, rows.plan.length);
  });
  return make_var("log_softmax", y, {x}, [y, rows](const Array& g, const Needs&) -> Grads {
    Array dx = result_for(rows, y.shape());
    for_each_row(rows, [&, out = dx.mutable_data()](int64_t at, const real* row) {
      kernels::log_softmax_row_grad(out + at, g.data() + at, y.data() + at, row, rows.plan.length);
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
