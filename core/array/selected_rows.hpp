// Rows of an array in another order: what the rows of decode states are moved by.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/array/array.hpp"

namespace capstan {

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
