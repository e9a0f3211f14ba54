#include "core/products/machine_rates.hpp"

#include <doctest/doctest.h>

using namespace capstan;

TEST_CASE("the measured limits of the machine are what some machine could have") {
  // From a hundredth of a slow one, because it may be busy, to ten times a fast one.
  const double bytes = triad_rate(1 << 20);
  CHECK(bytes > 1e7);
  CHECK(bytes < 1e13);
  const double operations = product_rate(512);
  CHECK(operations > 1e7);
  CHECK(operations < 1e15);
}
