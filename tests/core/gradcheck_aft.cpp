#include <doctest/doctest.h>

#include "core/gradcheck.hpp"
#include "core/parallel.hpp"
#include "tests/core/aft_cases.hpp"

using namespace capstan;
using namespace capstan::testing;

TEST_CASE("AFT ops: gradients match finite differences, with padding and packed documents") {
  const int64_t width = 35, length = 13;
  set_aft_tile(5);
  for (const int count : {1, 2}) {
    set_threads(count);
    for (const AftCase& c : aft_cases(width, length)) {
      std::vector<Shape> shapes{{4, length, c.packed}};
      shapes.insert(shapes.end(), c.parameters.begin(), c.parameters.end());
      GradcheckOptions options;
      options.samples = 60;
      const Segments segments = ragged_segments(length);
      const auto report = gradcheck([&](const std::vector<Var>& in) { return c.fused(in, segments); }, shapes, options);
      CHECK_MESSAGE(report.ok, c.name, ": ", report.worst);
    }
  }
  set_threads(0);
  set_aft_tile(0);
}
