// Copies of arrays with other axes, shapes and pieces, for the ops of core/ops and their pullbacks. A result that is a
// contiguous part of its input shares the buffer. tests/core/ops/test_ops.cpp and gradcheck_ops.cpp.
#include "core/array/layout.hpp"

#include <array>
#include <stdexcept>

#include "core/array/rows.hpp"
#include "core/base/error.hpp"
#include "core/kernels/column_sums.hpp"
#include "core/kernels/layout.hpp"

namespace capstan::CAPSTAN_PRECISION {

Array permuted_axes(const Array& x, const std::vector<int>& order) {
  const Shape& shape = x.shape();
  std::array<int64_t, Shape::max_rank> extents{}, strides{};
  std::vector<int64_t> result;
  size_t rank = 0;
  for (const int axis : order) {
    const int64_t extent = shape[axis], stride = shape.product(axis + 1, shape.rank());
    result.push_back(extent);
    if (extent == 1) continue;
    // Axes that are neighbours in x as well are merged into one.
    if (rank > 0 && strides[rank - 1] == extent * stride) {
      extents[rank - 1] *= extent;
      strides[rank - 1] = stride;
    } else {
      extents[rank] = extent;
      strides[rank++] = stride;
    }
  }
  const Shape permuted_shape(result);
  if (rank <= 1) return x.reshape(permuted_shape);  // nothing moves
  Array y(permuted_shape);
  kernels::permute(y.mutable_data(), x.data(), static_cast<int>(rank), extents.data(), strides.data());
  return y;
}

std::vector<int> inverse_order(const std::vector<int>& order) {
  std::vector<int> inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i) inverse[static_cast<size_t>(order[i])] = static_cast<int>(i);
  return inverse;
}

Array broadcasted(const Array& x, const Shape& shape) {
  if (x.size() == shape.size()) return x.reshape(shape);
  Array y(shape);
  real* const out = y.mutable_data();
  const RowPlan plan = plan_rows(shape, {x.shape()});
  parallel_rows(plan, [&](int64_t at, const RowPlan::Offsets& offsets, int64_t count) {
    const real* const in = x.data() + offsets[0];
    if (plan.step[0] == 1) {
      std::copy_n(in, count, out + at);
    } else {
      std::fill_n(out + at, count, *in);
    }
  });
  return y;
}

Array sum_to(const Array& array, const Shape& shape, const char* op) {
  const int missing = array.rank() - shape.rank();
  bool fits = missing >= 0;
  for (int axis = 0; fits && axis < shape.rank(); ++axis)
    fits = shape[axis] == array.dim(axis + missing) || shape[axis] == 1;
  if (!fits)
    throw std::logic_error(fmt::format("{}: a gradient of shape {} does not sum to {}", op, array.shape(), shape));
  Array result = array;
  const Shape full = array.shape();
  int64_t inner = 1;
  // Sums from the last axis to the first; neighbouring axes to be summed are summed in one pass.
  for (int axis = full.rank() - 1; axis >= 0;) {
    const auto summed = [&](int a) { return a < missing || (shape[a - missing] == 1 && full[a] != 1); };
    if (!summed(axis)) {
      inner *= full[axis--];
      continue;
    }
    int64_t middle = 1;
    while (axis >= 0 && summed(axis)) middle *= full[axis--];
    Array sums(Shape{full.product(0, axis + 1), inner});
    kernels::sum_middle(sums.mutable_data(), result.data(), sums.dim(0), middle, inner);
    result = std::move(sums);
  }
  return result.reshape(shape);
}

namespace {

/// Entries [begin, end) of one axis, in memory: `rows` blocks of `length` elements, `stride` apart from `offset` on.
struct Blocks {
  int64_t rows, stride, length, offset;
};

Blocks blocks_of(const Shape& shape, int axis, int64_t begin, int64_t end) {
  const int64_t inner = shape.product(axis + 1, shape.rank());
  return {shape.product(0, axis), shape[axis] * inner, (end - begin) * inner, begin * inner};
}

}  // namespace

Array sliced(const Array& x, int axis, int64_t begin, int64_t end) {
  const Blocks blocks = blocks_of(x.shape(), axis, begin, end);
  const Shape shape = x.shape().with(axis, end - begin);
  if (blocks.rows == 1 || blocks.length == blocks.stride) return x.view(blocks.offset, shape);
  Array part(shape);
  kernels::copy_blocks(part.mutable_data(), blocks.length, x.data() + blocks.offset, blocks.stride, blocks.rows,
                       blocks.length);
  return part;
}

void put_slice(Array& x, int axis, int64_t begin, const Array& part) {
  const Blocks blocks = blocks_of(x.shape(), axis, begin, begin + part.dim(axis));
  kernels::copy_blocks(x.mutable_data() + blocks.offset, blocks.stride, part.data(), blocks.length, blocks.rows,
                       blocks.length);
}

}  // namespace capstan::CAPSTAN_PRECISION
