// Element-wise ops as xtensor expressions, in parallel and with broadcasting: core/ops/math, math_unary and softmax.
// Heavy: include it in source files only. What a model trains with has exact operations only (sums, products,
// quotients, roots) in its expressions: functions such as exp have other bits on other CPUs and belong into
// core/kernels.
#pragma once

#include <functional>
#include <utility>

#include "core/array/array_xt.hpp"
#include "core/array/rows.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// row = expression, element by element, for operands that are rows of the same length or scalars. `xt::noalias` does
/// the same, but compiles a loop for strided operands as well, which costs more than all the rest of an op's source.
template <class Row, class E>
void assign_row(Row& row, const E& expression) {
  xt::linear_assigner<xt::xassign_traits<Row, E>::simd_assign()>::run(row, expression);
}

/// For each operand, in their order, a pointer to a contiguous piece of elements.
using RowOperands = std::array<const real*, RowPlan::max_operands>;
/// An op on one row: writes `count` elements of the result to `out`.
using RowFunction = std::function<void(real* out, const RowOperands& in, int64_t count)>;

/// The loop of elementwise(): calls `row` for every piece of the result, on all threads. An operand that has one value
/// along a row is given as a short piece that repeats it. Throws std::invalid_argument, beginning with `op`, where the
/// shapes do not broadcast.
Array compute_rows(const char* op, Array first, std::initializer_list<const Array*> others, const RowFunction& row);

/// f(first, others...) element by element; up to three operands, which broadcast as in NumPy.  f: from xtensor
/// expressions of rank 1, one for each operand, to an expression of the same size. The result is written over `first`
/// where that is the only handle on its buffer, so a pullback moves its gradient in.
template <class F, class... Others>
Array elementwise(const char* op, const F& f, Array first, const Others&... others) {
  return compute_rows(op, std::move(first), {&others...}, [&f](real* out, const RowOperands& in, int64_t count) {
    auto y = as_row(out, count);
    if constexpr (sizeof...(Others) == 0) {
      assign_row(y, f(as_row(in[0], count)));
    } else if constexpr (sizeof...(Others) == 1) {
      assign_row(y, f(as_row(in[0], count), as_row(in[1], count)));
    } else {
      assign_row(y, f(as_row(in[0], count), as_row(in[1], count), as_row(in[2], count)));
    }
  });
}

}  // namespace capstan::CAPSTAN_PRECISION
