// plan_rows() of rows.hpp: goes over the axes from the last to the first and merges those along which the same operands
// move. tests/core/ops/test_ops.cpp compares the results with NumPy's rules.
#include "core/array/rows.hpp"

namespace capstan {
namespace {

/// Adjacent axes of the result along which the same operands move.
struct Group {
  int64_t extent = 1;
  std::array<bool, RowPlan::max_operands> moves{};
};

/// The extent of `operand` along the axis that is `back` axes before the end of the result.
int64_t extent_at(const Shape& operand, int back) { return back <= operand.rank() ? operand[-back] : 1; }

}  // namespace

RowPlan plan_rows(const Shape& result, std::initializer_list<Shape> operands, bool rows_stay) {
  std::array<Group, Shape::max_rank> groups;  // the last axis of the result first
  size_t count = 0;
  for (int back = 1; back <= result.rank(); ++back) {
    const int64_t extent = result[-back];
    if (extent == 1 && !(rows_stay && back == 1)) continue;
    Group group{extent, {}};
    size_t i = 0;
    for (const Shape& operand : operands) group.moves[i++] = extent_at(operand, back) == extent;
    const bool stays_apart = rows_stay && count == 1;
    if (count > 0 && !stays_apart && groups[count - 1].moves == group.moves) {
      groups[count - 1].extent *= extent;
    } else {
      groups[count++] = group;
    }
  }
  if (count == 0) groups[count++] = Group{1, {true, true, true}};
  RowPlan plan;
  plan.length = groups[0].extent;
  plan.axes = static_cast<int>(count) - 1;
  RowPlan::Offsets stride;
  for (size_t i = 0; i < stride.size(); ++i) {
    plan.step[i] = groups[0].moves[i] ? 1 : 0;
    stride[i] = groups[0].moves[i] ? groups[0].extent : 1;
  }
  for (size_t g = 1; g < count; ++g) {
    const size_t axis = count - 1 - g;
    plan.rows *= plan.extents[axis] = groups[g].extent;
    for (size_t i = 0; i < stride.size(); ++i) {
      plan.strides[axis][i] = groups[g].moves[i] ? stride[i] : 0;
      if (groups[g].moves[i]) stride[i] *= groups[g].extent;
    }
  }
  return plan;
}

}  // namespace capstan
