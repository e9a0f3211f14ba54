// The loop of elementwise(), compiled once for all ops: it splits the broadcast result into contiguous pieces and calls
// the op's row function for each. tests/core/ops/test_ops.cpp checks broadcasting against NumPy's rules.
#include "core/array/rows_xt.hpp"

#include <algorithm>

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// Copies of an operand's single value that a row reads: 2 or 4 kB on the stack, a multiple of every register's lanes.
constexpr int64_t repeated_length = 512;

/// Computes a piece of a row. An operand with a single value along the row is repeated in a short array.
void compute_with_repeats(real* out, RowOperands in, const RowPlan& plan, size_t operands, int64_t count,
                          const RowFunction& row) {
  alignas(64) real repeated[RowPlan::max_operands][repeated_length];
  const int64_t length = std::min(count, repeated_length);
  for (size_t i = 0; i < operands; ++i) {
    if (plan.step[i] != 0) continue;
    std::fill_n(repeated[i], length, *in[i]);
    in[i] = repeated[i];
  }
  for (int64_t begin = 0; begin < count; begin += length) {
    row(out + begin, in, std::min(length, count - begin));
    for (size_t i = 0; i < operands; ++i)
      if (plan.step[i] != 0) in[i] += length;
  }
}

}  // namespace

Array compute_rows(const char* op, Array first, std::initializer_list<const Array*> others, const RowFunction& row) {
  Shape shape = first.shape();
  for (const Array* other : others) shape = broadcast_shapes(shape, other->shape(), op);
  RowOperands data{first.data()};
  std::array<Shape, RowPlan::max_operands> shapes{first.shape()};
  size_t operands = 1;
  for (const Array* other : others) {
    shapes[operands] = other->shape();
    data[operands++] = other->data();
  }
  const RowPlan plan = plan_rows(shape, {shapes[0], shapes[1], shapes[2]});
  Array out = first.unique() && first.shape() == shape ? std::move(first) : Array(shape);
  real* const y = out.mutable_data();
  bool repeats = false;
  for (size_t i = 0; i < operands; ++i) repeats = repeats || plan.step[i] == 0;
  parallel_rows(plan, [&](int64_t at, const RowPlan::Offsets& offsets, int64_t count) {
    RowOperands in = data;
    for (size_t i = 0; i < operands; ++i) in[i] += offsets[i];
    if (repeats) {
      compute_with_repeats(y + at, in, plan, operands, count, row);
    } else {
      row(y + at, in, count);
    }
  });
  return out;
}

}  // namespace capstan::CAPSTAN_PRECISION
