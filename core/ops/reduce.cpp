// sum() and mean(), by sum_to() and broadcasted() of core/array/layout: long sums are added in blocks, with a rounding
// error that tests/core/ops/test_ops.cpp bounds.
#include "core/ops/reduce.hpp"

#include <numeric>
#include <utility>

#include "core/array/layout.hpp"
#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "core/kernels/elementwise.hpp"
#include "core/machine/profile.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// A shape whose axes are reduced.
struct Reduced {
  Shape ones;         // with extent 1 for these axes
  Shape kept;         // without them
  int64_t count = 1;  // elements that become one
};

/// Throws std::invalid_argument for an axis outside of the shape or named twice.
Reduced reduced(const char* op, const Shape& shape, const Axes& axes) {
  std::vector<int64_t> ones = shape.to_vector(), kept;
  std::vector<bool> dropped(ones.size(), false);
  int64_t count = 1;
  for (const int axis : axes) {
    const auto a = static_cast<size_t>(shape.normalize_axis(axis, op));
    check(!dropped[a], "{}: axis {} of shape {} is named twice", op, axis, shape);
    dropped[a] = true;
    count *= std::exchange(ones[a], 1);
  }
  for (size_t a = 0; a < ones.size(); ++a)
    if (!dropped[a]) kept.push_back(ones[a]);
  return {Shape(ones), Shape(kept), count};
}

Axes all_axes(const Var& x) {
  Axes axes(static_cast<size_t>(x.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

/// Sum or mean: scale times the sum.
Var scaled_sum(const char* op, const Var& x, const Reduced& to, const ReduceOptions& options, real scale) {
  const auto scaled = [scale](const Array& in) {
    if (scale == 1) return in;
    Array out(in.shape());
    kernels::scale(out.mutable_data(), in.data(), in.size(), scale);
    return out;
  };
  const Array y = scaled(sum_to(x.value(), to.ones, op));
  return make_var(op, y.reshape(options.keep_dims ? to.ones : to.kept), {x},
                  [shape = x.shape(), ones = to.ones, scaled](const Array& g, const Needs&) -> Grads {
                    return {broadcasted(scaled(g).reshape(ones), shape)};
                  });
}

}  // namespace

Var sum(const Var& x) { return sum(x, all_axes(x)); }

Var sum(const Var& x, const Axes& axes, const ReduceOptions& options) {
  const ProfileSpan span;
  return scaled_sum("sum", x, reduced("sum", x.shape(), axes), options, 1);
}

Var mean(const Var& x) { return mean(x, all_axes(x)); }

Var mean(const Var& x, const Axes& axes, const ReduceOptions& options) {
  const ProfileSpan span;
  const Reduced to = reduced("mean", x.shape(), axes);
  check(to.count > 0, "mean: no elements along the reduced axes of shape {}", x.shape());
  return scaled_sum("mean", x, to, options, static_cast<real>(1.0 / static_cast<double>(to.count)));
}

}  // namespace capstan::CAPSTAN_PRECISION
