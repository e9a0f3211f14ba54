#include "core/ops/reduce.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/array/layout.hpp"
#include "core/array/rows_xt.hpp"
#include "core/base/error.hpp"
#include "core/kernels/elementwise.hpp"
#include "core/kernels/reduce.hpp"
#include "core/machine/profile.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// Which axes are reduced. Throws std::invalid_argument for an axis outside the shape or named twice.
std::vector<bool> reduced_axes(const char* op, const Shape& shape, const Axes& axes) {
  std::vector<bool> reduced(static_cast<size_t>(shape.rank()), false);
  for (const int axis : axes) {
    check(axis >= -shape.rank() && axis < shape.rank(), "{}: axis {} is outside shape {}", op, axis, shape);
    const auto a = static_cast<size_t>(shape.normalize_axis(axis));
    check(!reduced[a], "{}: axis {} of shape {} is named twice", op, axis, shape);
    reduced[a] = true;
  }
  return reduced;
}

Axes all_axes(const Var& x) {
  Axes axes;
  for (int axis = 0; axis < x.rank(); ++axis) axes.push_back(axis);
  return axes;
}

/// An array seen as (outer, middle, inner) with all reduced axes in `middle`; axes are moved to the end where they are
/// not neighbours, in their order, so that "first" keeps its meaning.
struct Folded {
  Array x;
  int64_t outer = 1, middle = 1, inner = 1;
  std::vector<int> order;  // of the axes in x
  Shape kept_ones;         // the result with extent 1 for reduced axes
  Shape kept;              // the result without them
  Shape result(const ReduceOptions& options) const { return options.keep_dims ? kept_ones : kept; }
  int64_t count() const { return outer * inner; }
};

Folded fold(const char* op, const Array& x, const Axes& axes, bool at_end = false) {
  const Shape& shape = x.shape();
  const std::vector<bool> reduced = reduced_axes(op, shape, axes);
  Folded folded;
  std::vector<int64_t> kept, kept_ones;
  std::vector<int> last;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const bool drop = reduced[static_cast<size_t>(axis)];
    if (!drop) kept.push_back(shape[axis]);
    kept_ones.push_back(drop ? 1 : shape[axis]);
    (drop ? last : folded.order).push_back(axis);
    if (drop) folded.middle *= shape[axis];
  }
  folded.kept = Shape(kept);
  folded.kept_ones = Shape(kept_ones);
  const bool neighbours = last.empty() || last.back() - last.front() + 1 == static_cast<int>(last.size());
  const bool trailing = last.empty() || last.back() + 1 == shape.rank();
  if (neighbours && (trailing || !at_end)) {
    if (!last.empty()) {
      folded.outer = shape.product(0, last.front());
      folded.inner = shape.product(last.back() + 1, shape.rank());
    } else {
      folded.outer = shape.size();
    }
    folded.order.clear();
    folded.x = x;
    return folded;
  }
  folded.outer = folded.kept.size();
  folded.order.insert(folded.order.end(), last.begin(), last.end());
  folded.x = permuted_axes(x, folded.order);
  return folded;
}

/// Back from the folded order of axes to that of x.
Array unfold(const Array& dx, const std::vector<int>& order, const Shape& shape) {
  return order.empty() ? dx.reshape(shape) : permuted_axes(dx, inverse_order(order));
}

/// Sum or mean: scale times the sum.
Var scaled_sum(const char* op, const Var& x, const Folded& folded, const ReduceOptions& options, real scale) {
  Array y(folded.result(options));
  real* const out = y.mutable_data();
  kernels::sum_middle(out, folded.x.data(), folded.outer, folded.middle, folded.inner);
  if (scale != 1) kernels::scale(out, out, y.size(), scale);
  return make_var(op, std::move(y), {x},
                  [shape = x.shape(), ones = folded.kept_ones, scale](const Array& g, const Needs&) -> Grads {
                    if (scale == 1) return {broadcasted(g.reshape(ones), shape)};
                    Array scaled(ones);
                    kernels::scale(scaled.mutable_data(), g.data(), g.size(), scale);
                    return {broadcasted(scaled, shape)};
                  });
}

using BestKernel = void (*)(real*, int32_t*, const real*, int64_t, int64_t, int64_t);

/// Maximum or minimum; `where` remembers the place that was chosen.
Var best(const char* op, const Var& x, const Axes& axes, const ReduceOptions& options, BestKernel kernel) {
  const ProfileSpan span;
  const Folded folded = fold(op, x.value(), axes);
  check(folded.middle > 0, "{}: no elements along the reduced axes of shape {}", op, x.shape());
  check(folded.middle <= std::numeric_limits<int32_t>::max(),
        "{}: {} elements along the reduced axes are more than 2^31 - 1", op, folded.middle);
  Array y(folded.result(options));
  Ids where(Shape{folded.count()});
  kernel(y.mutable_data(), where.mutable_data(), folded.x.data(), folded.outer, folded.middle, folded.inner);
  return make_var(op, std::move(y), {x},
                  [where, shape = x.shape(), seen = folded.x.shape(), order = folded.order, middle = folded.middle,
                   inner = folded.inner](const Array& g, const Needs&) -> Grads {
                    Array dx(seen);
                    kernels::fill(dx.mutable_data(), dx.size(), 0);
                    real* const out = dx.mutable_data();
                    for (int64_t i = 0; i < g.size(); ++i)
                      out[(i / inner * middle + where[i]) * inner + i % inner] = g[i];
                    return {unfold(dx, order, shape)};
                  });
}

}  // namespace

Var sum(const Var& x) { return sum(x, all_axes(x)); }
Var sum(const Var& x, const Axes& axes, const ReduceOptions& options) {
  const ProfileSpan span;
  return scaled_sum("sum", x, fold("sum", x.value(), axes), options, 1);
}

Var mean(const Var& x) { return mean(x, all_axes(x)); }
Var mean(const Var& x, const Axes& axes, const ReduceOptions& options) {
  const ProfileSpan span;
  const Folded folded = fold("mean", x.value(), axes);
  check(folded.middle > 0, "mean: no elements along the reduced axes of shape {}", x.shape());
  return scaled_sum("mean", x, folded, options, static_cast<real>(1.0 / static_cast<double>(folded.middle)));
}

Var max(const Var& x) { return max(x, all_axes(x)); }
Var max(const Var& x, const Axes& axes, const ReduceOptions& options) {
  return best("max", x, axes, options, kernels::max_middle);
}

Var min(const Var& x) { return min(x, all_axes(x)); }
Var min(const Var& x, const Axes& axes, const ReduceOptions& options) {
  return best("min", x, axes, options, kernels::min_middle);
}

Var logsumexp(const Var& x, const Axes& axes, const ReduceOptions& options) {
  const ProfileSpan span;
  const Folded folded = fold("logsumexp", x.value(), axes, /*at_end=*/true);
  const int64_t length = folded.middle, grain = 1 + elementwise_grain / std::max<int64_t>(length, 1);
  constexpr real infinity = std::numeric_limits<real>::infinity();
  Array y(folded.result(options));
  parallel_for(folded.outer, grain, [&, in = folded.x.data(), out = y.mutable_data()](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto row = as_row(in + i * length, length);
      const real largest = length > 0 ? xt::amax(row)() : -infinity, m = std::isfinite(largest) ? largest : 0;
      out[i] = m + static_cast<real>(std::log(xt::sum<double>(xt::exp(row - m))()));
    }
  });
  return make_var("logsumexp", y, {x},
                  [y, seen = folded.x, order = folded.order, shape = x.shape(), length, grain](const Array& g,
                                                                                               const Needs&) -> Grads {
                    Array dx(seen.shape());
                    parallel_for(g.size(), grain, [&, out = dx.mutable_data()](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) {
                        auto row = as_row(out + i * length, length);
                        // Where all x are -infinity, so is y; e^(-infinity - 0) is then the right 0.
                        const real shift = y[i] == -infinity ? 0 : y[i];
                        assign_row(row, g[i] * xt::exp(as_row(seen.data() + i * length, length) - shift));
                      }
                    });
                    return {unfold(dx, order, shape)};
                  });
}

}  // namespace capstan::CAPSTAN_PRECISION
