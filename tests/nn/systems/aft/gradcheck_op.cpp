#include <doctest/doctest.h>

#include "core/autograd/gradcheck.hpp"
#include "tests/nn/systems/aft/op_cases.hpp"
#include "tests/support/threads.hpp"

using namespace capstan;
using namespace capstan::testing;

TEST_CASE("AFT ops: gradients match finite differences, with padding and packed documents") {
  const int64_t width = 35, length = 13;
  // Tiles of 5 are each of their own form; of 2, aft_conv has several in a row that share their weights.
  for (const auto& [tile, count] : {std::pair<int64_t, int>{5, 1}, {5, 2}, {2, 2}}) {
    const Threads threads_used(count);
    for (const AftCase& c : aft_cases(width, length, tile)) {
      std::vector<Shape> shapes{{4, length, c.packed}};
      shapes.insert(shapes.end(), c.parameters.begin(), c.parameters.end());
      GradcheckOptions options;
      options.samples = 60;
      const Segments segments = ragged_segments(length);
      const auto report = gradcheck([&](const std::vector<Var>& in) { return c.fused(in, segments); }, shapes, options);
      CHECK_MESSAGE(report.ok, c.name, ": ", report.worst);
    }
  }
}
