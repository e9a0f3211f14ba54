// The gradient of a table of which few rows were read: core/fused/bag.cpp makes it, GradBlock (core/autograd) adds it
// up, and train/optimizers updates the rows it has. tests/core/array/test_row_grads.cpp holds the sum.
#pragma once

#include <cstdint>
#include <vector>

#include "core/array/array.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// A gradient of some rows of a table; that of all other rows is 0. A batch reads few rows of a large table, so neither
/// memory nor passes over the gradient depend on the table's size.
class RowGrads {
 public:
  RowGrads() = default;
  /// `values` (rows, width) belong to `rows`, which ascend and occur once each. Throws std::invalid_argument otherwise.
  RowGrads(std::vector<int64_t> rows, Array values);

  bool empty() const { return rows_.empty(); }
  int64_t count() const { return static_cast<int64_t>(rows_.size()); }
  /// The indices of the rows, ascending.
  const std::vector<int64_t>& rows() const { return rows_; }
  /// The gradients of these rows, (count, width); empty where there are no rows.
  const Array& values() const { return values_; }
  /// The values, to be changed in place; null where there are no rows. Throws std::logic_error while another handle
  /// shares them (ArrayOf::mutable_data).
  real* data() { return values_.empty() ? nullptr : values_.mutable_data(); }

  /// this + other: rows that both have are added, the others are taken over. Throws std::invalid_argument where the
  /// widths differ.
  void add(RowGrads other);
  void clear() { *this = RowGrads(); }

 private:
  std::vector<int64_t> rows_;
  Array values_;
};

}  // namespace capstan::CAPSTAN_PRECISION
