// One loop for all kinds of broadcasting. Axes along which all operands behave alike are merged. The last of the merged
// axes is the row, along which an operand moves by 1 or not at all; outer loops go over the others. An operation is
// thus written once, for a row of contiguous or constant operands, and is vectorised for any shapes. Used by
// core/array/rows_xt, broadcasted(), softmax and matmul; tests/core/ops/test_ops.cpp compares the results with NumPy's
// rules.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/array/shape.hpp"
#include "core/machine/parallel.hpp"

namespace capstan {

/// How operands that broadcast to `result` are walked through.
struct RowPlan {
  static constexpr int max_operands = 3;
  using Offsets = std::array<int64_t, max_operands>;

  int64_t rows = 1;
  int64_t length = 1;  // of one row
  Offsets step{};      // each operand's step in a row: 1, or 0 where it has one value for the whole row
  // The counted axes, slowest first: their extents and each operand's stride.
  int axes = 0;
  std::array<int64_t, Shape::max_rank> extents{};
  std::array<Offsets, Shape::max_rank> strides{};
};

/// `rows_stay` keeps the last axis of `result` as the row, however the operands behave along the axis before it.
RowPlan plan_rows(const Shape& result, std::initializer_list<Shape> operands, bool rows_stay = false);

/// Calls body(offset in the result, offsets in the operands) for rows [begin, end), in order.
template <class Body>
void walk_rows(const RowPlan& plan, int64_t begin, int64_t end, const Body& body) {
  std::array<int64_t, Shape::max_rank> index{};
  RowPlan::Offsets offsets{};
  int64_t rest = begin;
  for (int axis = plan.axes - 1; axis >= 0; --axis) {
    const auto a = static_cast<size_t>(axis);
    index[a] = rest % plan.extents[a];
    rest /= plan.extents[a];
    for (size_t i = 0; i < offsets.size(); ++i) offsets[i] += index[a] * plan.strides[a][i];
  }
  for (int64_t row = begin; row < end; ++row) {
    body(row * plan.length, offsets);
    for (int axis = plan.axes - 1; axis >= 0; --axis) {
      const auto a = static_cast<size_t>(axis);
      const bool wraps = ++index[a] == plan.extents[a];
      const int64_t steps = wraps ? 1 - plan.extents[a] : 1;
      for (size_t i = 0; i < offsets.size(); ++i) offsets[i] += steps * plan.strides[a][i];
      if (!wraps) break;
      index[a] = 0;
    }
  }
}

/// Calls body(offset in the result, offsets in the operands, count) for pieces of rows, split among the threads. A
/// single long row is cut at multiples of 64 elements, so that the split does not decide what a vector register
/// handles.
template <class Body>
void parallel_rows(const RowPlan& plan, const Body& body) {
  constexpr int64_t granule = 64;
  if (plan.rows == 0 || plan.length == 0) return;
  if (plan.rows > 1) {
    parallel_for(plan.rows, 1 + elementwise_grain / plan.length, [&](int64_t begin, int64_t end) {
      walk_rows(plan, begin, end,
                [&](int64_t result, const RowPlan::Offsets& offsets) { body(result, offsets, plan.length); });
    });
    return;
  }
  parallel_for((plan.length + granule - 1) / granule, elementwise_grain / granule, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * granule;
    RowPlan::Offsets offsets;
    for (size_t i = 0; i < offsets.size(); ++i) offsets[i] = first * plan.step[i];
    body(first, offsets, std::min(end * granule, plan.length) - first);
  });
}

}  // namespace capstan
