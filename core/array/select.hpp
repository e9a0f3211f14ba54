// Rows of an array in another order.
#pragma once

#include <algorithm>
#include <vector>

#include "core/array/array.hpp"

namespace capstan {

/// y[i] = x[rows[i]] along the first axis; x itself without elements. Rows may repeat.
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

}  // namespace capstan
