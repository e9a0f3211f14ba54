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

namespace capstan {

// select_rows() and copy_row(): rows of an array in another order.

/// y[i] = x[rows[i]] along the first axis. Rows may repeat, and are not checked. Returns x itself where it has no
/// elements.
template <class T>
ArrayOf<T> select_rows(const ArrayOf<T>& x, const std::vector<int64_t>& rows) {
  if (x.empty()) return x;
  const int64_t size = x.size() / x.dim(0);
  std::vector<int64_t> shape = x.shape().to_vector();
  shape[0] = static_cast<int64_t>(rows.size());
  ArrayOf<T> y((Shape(shape)));
  T* out = y.mutable_data();
  for (const int64_t row : rows) out = std::copy_n(x.data() + row * size, size, out);
  return y;
}

/// Row `to` of `array` becomes row `row` of `from`, which has the same shape but for the number of rows. Does nothing
/// where `array` has no elements.
template <class T>
void copy_row(ArrayOf<T>& array, int64_t to, const ArrayOf<T>& from, int64_t row) {
  if (array.empty() || (array.data() == from.data() && to == row)) return;
  const int64_t size = array.size() / array.dim(0);
  std::copy_n(from.data() + row * size, size, array.mutable_data() + to * size);
}

}  // namespace capstan
