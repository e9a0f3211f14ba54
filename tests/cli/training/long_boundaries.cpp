// Every numeric key of the configuration with every boundary value.
#include <doctest/doctest.h>

#include "tests/cli/support/boundaries.hpp"

namespace capstan::testing {

TEST_CASE("numbers at and beyond the limits of their keys: an error or a run, never a signal, never for long") {
  const Workplace place;
  BoundaryCounts counts;
  for (const Boundary& boundary : boundaries(place)) check_boundary(place, boundary, counts);
  MESSAGE(counts.cases, " cases: ", counts.refused, " refused as configuration, ", counts.failed,
          " errors of the run, ", counts.trained, " trained, ", counts.interrupted,
          " ended by SIGTERM after 5 s; the slowest, ", counts.slowest_name, ", took ", counts.slowest, " s");
}

}  // namespace capstan::testing
