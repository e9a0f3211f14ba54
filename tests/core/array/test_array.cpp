#include <doctest/doctest.h>

#include "core/array/array.hpp"
#include "core/base/error.hpp"

using namespace capstan;

TEST_CASE("shape: extents whose product overflows are refused") {
  const int64_t large = int64_t{1} << 62;
  CHECK_THROWS_AS(Shape({large, 4}), Error);
  CHECK_THROWS_AS(Shape({large, 4, 0}), Error);
  CHECK_THROWS_AS(Shape({int64_t{1} << 32, int64_t{1} << 32}), Error);
  CHECK_THROWS_AS(Shape({4, int64_t{1} << 57}).append(2), Error);
  CHECK(Shape({int64_t{1} << 30, 0, 8}).size() == 0);
  CHECK(Shape({int64_t{1} << 30, int64_t{1} << 29}).size() == int64_t{1} << 59);
}

TEST_CASE("an array's buffer is shared by views and written only by its one owner") {
  Array a(Shape{4, 3}, real{2});
  a.mutable_data()[0] = 5;
  const Array b = a.rows(1, 3);
  CHECK(b.shape() == Shape{2, 3});
  CHECK_THROWS_AS(a.mutable_data(), std::logic_error);
  CHECK_THROWS_AS(a.reshape(Shape{5}), std::invalid_argument);
}
