#include "core/array/row_grads.hpp"

#include <doctest/doctest.h>

using namespace capstan;

TEST_CASE("a sum of row gradients reads neither rows nor values past the end") {
  const Array values(Shape{2, 3}, real{7});
  for (const bool left : {true, false}) {
    std::vector<int64_t> rows{3, 9};
    rows.pop_back();  // the 9 stays in memory, and so does the second row of the values
    RowGrads shorter(std::move(rows), values.rows(0, 1)), other({9}, Array(Shape{1, 3}, real{2}));
    RowGrads& sum = left ? shorter : other;
    sum.add(left ? other : shorter);
    CHECK(sum.rows() == std::vector<int64_t>{3, 9});
    CHECK(sum.values().to_vector() == std::vector<real>{7, 7, 7, 2, 2, 2});
  }
}
