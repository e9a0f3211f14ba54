// Which rows of a table have received a gradient.
#pragma once

#include <cstdint>
#include <vector>

namespace capstan {

/// The rows of a table whose gradients may differ from zero, each once, in the order in which they were first named. A
/// batch names few rows of a large table; passes over its gradient visit these alone.
class TouchedRows {
 public:
  explicit TouchedRows(int64_t count) : marked_(static_cast<size_t>(count), 0) {}

  void add(int64_t row) {
    char& mark = marked_[static_cast<size_t>(row)];
    if (mark != 0) return;
    mark = 1;
    rows_.push_back(row);
  }
  void clear() {
    for (const int64_t row : rows_) marked_[static_cast<size_t>(row)] = 0;
    rows_.clear();
  }
  const std::vector<int64_t>& rows() const { return rows_; }

 private:
  std::vector<char> marked_;
  std::vector<int64_t> rows_;
};

}  // namespace capstan
