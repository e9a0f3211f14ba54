#include "nn/systems/flash/shift.hpp"

#include <doctest/doctest.h>

#include "core/ops/ops.hpp"
#include "tests/support/arrays.hpp"

using namespace capstan;

TEST_CASE("a token's first features are those of the token before it in its document") {
  // Two documents and padding; three features, of which two move.
  const Segments segments(Ids({1, 6}, std::vector<int32_t>{1, 1, 1, 2, 2, 0}));
  const Array x = random_array({1, 6, 3}, 2);
  const Array y = shift_tokens(Var(x), segments).value();
  const auto at = [](const Array& array, int64_t t, int64_t c) { return array[t * 3 + c]; };
  for (int64_t t = 0; t < 6; ++t)
    for (int64_t c = 0; c < 3; ++c) {
      const bool first = t == 0 || t == 3, padding = t == 5;
      const real expected = padding ? real{0} : c == 2 ? at(x, t, c) : first ? real{0} : at(x, t - 1, c);
      CHECK(at(y, t, c) == expected);
    }
  CHECK_THROWS_AS(shift_tokens(Var(x), Segments::full(1, 5)), std::invalid_argument);
}

TEST_CASE("shift_tokens is a product with a matrix of zeros and ones, and so is its gradient") {
  const Segments segments(Ids({2, 4}, std::vector<int32_t>{1, 1, 2, 2, 0, 1, 1, 1}));
  // <dy, S x> = <S^T dy, x> for every pair, where S is linear.
  const Array x = random_array({2, 4, 5}, 3), dy = random_array({2, 4, 5}, 4);
  const Var leaf = Var::leaf(x);
  TapeScope scope;
  const Var y = shift_tokens(leaf, segments);
  scope.backward(sum(y * Var(dy)));
  double left = 0, right = 0;
  for (int64_t i = 0; i < x.size(); ++i) {
    left += static_cast<double>(dy[i]) * static_cast<double>(y.value()[i]);
    right += static_cast<double>(leaf.grad()[i]) * static_cast<double>(x[i]);
  }
  CHECK(std::abs(left - right) < 1e-5);
}
