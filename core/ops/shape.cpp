// Ops that move elements: their values and gradients are exact. reshape() moves nothing, slice() and split() share the
// buffer where the part is contiguous.
#include "core/ops/shape.hpp"

#include <algorithm>
#include <numeric>

#include "core/array/layout.hpp"
#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "core/kernels/elementwise.hpp"
#include "core/machine/profile.hpp"
#include "core/strings/strings.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// The extents with a number in place of -1, so that they have as many elements as x.
std::vector<int64_t> resolved_extents(const Var& x, const std::vector<int64_t>& extents) {
  std::vector<int64_t> result = extents;
  const auto inferred = std::find(result.begin(), result.end(), -1);
  if (inferred == result.end()) return result;
  int64_t known = 1;
  bool fits = true;
  for (auto extent = result.begin(); extent != result.end(); ++extent) {
    check(extent == inferred || *extent >= 0, "reshape: extents ({}) of {}: only one may be -1, and none may be less",
          join(extents), x.shape());
    if (extent != inferred) fits = !__builtin_mul_overflow(known, *extent, &known) && fits;
  }
  check(fits && known > 0 && x.size() % known == 0, "reshape: {} does not fit ({})", x.shape(), join(extents));
  *inferred = x.size() / known;
  return result;
}

}  // namespace

Var reshape(const Var& x, const std::vector<int64_t>& extents) {
  const ProfileSpan span;
  const Shape shape(resolved_extents(x, extents));
  declare_traffic(0);
  return make_var("reshape", x.value().reshape(shape), {x},
                  [before = x.shape()](const Array& g, const Needs&) -> Grads {
                    declare_traffic(0);
                    return {g.reshape(before)};
                  });
}

Var transpose(const Var& x, const std::vector<int>& order) {
  const ProfileSpan span;
  std::vector<int> sorted = order, axes(static_cast<size_t>(x.rank()));
  std::sort(sorted.begin(), sorted.end());
  std::iota(axes.begin(), axes.end(), 0);
  check(sorted == axes, "transpose: ({}) is not a permutation of the axes of {}", join(order), x.shape());
  return make_var(
      "transpose", permuted_axes(x.value(), order), {x},
      [inverse = inverse_order(order)](const Array& g, const Needs&) -> Grads { return {permuted_axes(g, inverse)}; });
}

Var transpose(const Var& x) {
  check(x.rank() >= 2, "transpose: need rank >= 2, got shape {}", x.shape());
  std::vector<int> order(static_cast<size_t>(x.rank()));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return transpose(x, order);
}

Var slice(const Var& x, int axis, int64_t begin, int64_t end) {
  const ProfileSpan span;
  const int at_axis = x.shape().normalize_axis(axis, "slice");
  check(begin >= 0 && begin <= end && end <= x.dim(at_axis), "slice: [{}, {}) is outside axis {} of shape {}", begin,
        end, at_axis, x.shape());
  const int64_t elements_per_entry = x.size() / std::max<int64_t>(x.dim(at_axis), 1);
  declare_traffic(2 * elements_per_entry * (end - begin) * static_cast<int64_t>(sizeof(real)));  // read and written
  return make_var("slice", sliced(x.value(), at_axis, begin, end), {x},
                  [shape = x.shape(), at_axis, begin](const Array& g, const Needs&) -> Grads {
                    Array dx(shape);
                    kernels::fill(dx.mutable_data(), dx.size(), 0);
                    put_slice(dx, at_axis, begin, g);
                    return {dx};
                  });
}

Var concatenate(const std::vector<Var>& parts, int axis) {
  const ProfileSpan span;
  check(!parts.empty(), "concatenate: need at least one part");
  const Shape& first = parts.front().shape();
  const int at_axis = first.normalize_axis(axis, "concatenate");
  int64_t extent = 0;
  for (const Var& part : parts) {
    check(part.rank() == first.rank() && part.shape().with(at_axis, 0) == first.with(at_axis, 0),
          "concatenate: shapes {} and {} differ in more than axis {}", first, part.shape(), at_axis);
    extent += part.dim(at_axis);
  }
  Array y(first.with(at_axis, extent));
  std::vector<int64_t> sizes;
  int64_t at = 0;
  for (const Var& part : parts) {
    put_slice(y, at_axis, at, part.value());
    sizes.push_back(part.dim(at_axis));
    at += part.dim(at_axis);
  }
  return make_var("concatenate", std::move(y), parts, [at_axis, sizes](const Array& g, const Needs& needs) {
    Grads grads(sizes.size());
    int64_t begin = 0;
    for (size_t i = 0; i < sizes.size(); begin += sizes[i++])
      if (needs[i]) grads[i] = sliced(g, at_axis, begin, begin + sizes[i]);
    return grads;
  });
}

std::vector<Var> split(const Var& x, int axis, const std::vector<int64_t>& sizes) {
  const ProfileSpan span;
  const int at_axis = x.shape().normalize_axis(axis, "split");
  int64_t total = 0;
  for (const int64_t size : sizes) {
    check(size >= 0, "split: sizes must not be negative, got {}", size);
    total += size;
  }
  check(total == x.dim(at_axis), "split: pieces ({}) do not add up to axis {} of shape {}", join(sizes), at_axis,
        x.shape());
  std::vector<Array> pieces;
  int64_t at = 0;
  for (const int64_t size : sizes) {
    pieces.push_back(sliced(x.value(), at_axis, at, at + size));
    at += size;
  }
  return make_vars("split", std::move(pieces), {x},
                   [at_axis, sizes, shape = x.shape()](const std::vector<Array>& gs, const Needs&) -> Grads {
                     Array dx(shape);
                     // An output that was not used has an empty gradient: its piece stays 0.
                     bool complete = true;
                     for (size_t i = 0; i < sizes.size(); ++i) complete = complete && (!gs[i].empty() || sizes[i] == 0);
                     if (!complete) kernels::fill(dx.mutable_data(), dx.size(), 0);
                     int64_t begin = 0;
                     for (size_t i = 0; i < sizes.size(); begin += sizes[i++])
                       if (!gs[i].empty()) put_slice(dx, at_axis, begin, gs[i]);
                     return {dx};
                   });
}

Var broadcast_to(const Var& x, const Shape& shape) {
  const ProfileSpan span;
  check(broadcast_shapes(x.shape(), shape, "broadcast_to") == shape, "broadcast_to: {} does not broadcast to {}",
        x.shape(), shape);
  // The tape sums g over the broadcast axes.
  return make_var("broadcast_to", broadcasted(x.value(), shape), {x}, [](const Array& g, const Needs&) -> Grads {
    declare_traffic(0);
    return {g};
  });
}

}  // namespace capstan::CAPSTAN_PRECISION
