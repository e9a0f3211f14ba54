// RowGrads::add() merges two ascending lists of rows and adds the values of rows that are in both.
// tests/core/array/test_row_grads.cpp checks that it reads nothing past the ends.
#include "core/array/row_grads.hpp"

#include <algorithm>
#include <iterator>

#include "core/base/error.hpp"
#include "core/kernels/elementwise.hpp"

namespace capstan::CAPSTAN_PRECISION {

RowGrads::RowGrads(std::vector<int64_t> rows, Array values) : rows_(std::move(rows)), values_(std::move(values)) {
  check(values_.rank() == 2 && values_.dim(0) == count(), "row gradients: values {} do not fit {} rows",
        values_.shape(), count());
  check(std::adjacent_find(rows_.begin(), rows_.end(), std::greater_equal<>()) == rows_.end(),
        "row gradients: the rows do not ascend");
}

void RowGrads::add(RowGrads other) {
  if (other.empty()) return;
  if (empty()) {
    *this = std::move(other);
    return;
  }
  const int64_t width = values_.dim(1);
  check(other.values_.dim(1) == width, "row gradients: values {} and {} differ in width", values_.shape(),
        other.values_.shape());
  std::vector<int64_t> rows;
  rows.reserve(rows_.size() + other.rows_.size());
  std::set_union(rows_.begin(), rows_.end(), other.rows_.begin(), other.rows_.end(), std::back_inserter(rows));
  Array values(Shape{static_cast<int64_t>(rows.size()), width});
  real* out = values.mutable_data();
  const real *left = values_.data(), *right = other.values_.data();
  size_t l = 0, r = 0;
  for (const int64_t row : rows) {
    const bool in_left = l < rows_.size() && rows_[l] == row,
               in_right = r < other.rows_.size() && other.rows_[r] == row;
    kernels::copy(out, in_left ? left : right, width);
    if (in_left && in_right) kernels::add_into(out, right, width);
    if (in_left) {
      ++l;
      left += width;
    }
    if (in_right) {
      ++r;
      right += width;
    }
    out += width;
  }
  rows_ = std::move(rows);
  values_ = std::move(values);
}

}  // namespace capstan::CAPSTAN_PRECISION
