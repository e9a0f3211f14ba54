// Arrays rearranged: what the ops that move elements (core/ops/shape, reduce), their pullbacks, the tape's sums over
// broadcast axes and the rows of decode states are made of. tests/core/ops/test_ops.cpp holds the values.
#pragma once

#include <algorithm>
#include <vector>

#include "core/array/array.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// Axis i of the result is axis order[i] of x; `order` must be a permutation of the axes.
Array permuted_axes(const Array& x, const std::vector<int>& order);
/// The order that undoes `order`.
std::vector<int> inverse_order(const std::vector<int>& order);

/// x repeated to `shape`, to which it must broadcast.
Array broadcasted(const Array& x, const Shape& shape);
/// Sums `array` over the axes along which `shape` was broadcast to array.shape(), in an order that depends on the
/// shapes alone. Throws std::logic_error naming `op` when `shape` does not broadcast to it.
Array sum_to(const Array& array, const Shape& shape, const char* op);

/// Entries [begin, end) of `axis`; shares x's buffer where they are contiguous in it.
Array sliced(const Array& x, int axis, int64_t begin, int64_t end);
/// Writes `part` to the entries of `axis` from `begin` on.
void put_slice(Array& x, int axis, int64_t begin, const Array& part);

}  // namespace capstan::CAPSTAN_PRECISION

namespace capstan {}  // namespace capstan
