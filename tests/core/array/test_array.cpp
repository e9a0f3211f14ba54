#include <doctest/doctest.h>

#include "core/array/array.hpp"

using namespace capstan;

TEST_CASE("an array's buffer is shared by views and written only by its one owner") {
  Array a(Shape{4, 3}, real{2});
  a.mutable_data()[0] = 5;
  const Array b = a.rows(1, 3);
  CHECK(b.shape() == Shape{2, 3});
  CHECK_THROWS_AS(a.mutable_data(), std::logic_error);
  CHECK_THROWS_AS(a.reshape(Shape{5}), std::invalid_argument);
}
