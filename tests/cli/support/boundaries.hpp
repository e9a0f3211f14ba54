// The numeric keys of the schema at and beyond their limits. The keys are those that `capstan config table` prints, so
// a new key is tested without a line here.
#pragma once

#include <string>
#include <vector>

#include "tests/cli/support/program.hpp"

namespace capstan::testing {

/// One value of one key.
struct Boundary {
  std::string config;                 // the file that the settings are added to
  std::vector<std::string> settings;  // types that the key needs, then key=value
  std::string name() const { return config + " " + settings.back(); }
};

/// Every numeric key with every value; `place` gets the files that they need.
std::vector<Boundary> boundaries(const Workplace& place);

/// How the cases ended.
struct BoundaryCounts {
  int cases = 0, refused = 0, failed = 0, trained = 0, interrupted = 0;
  double slowest = 0;
  std::string slowest_name;
};

/// `config check` and, where it accepts the value, a training of one step in an address space of 4 GB; a run that goes
/// on gets SIGTERM after 5 s. Checks that each ends with an exit code and a presentable message, within 30 s because
/// other tests may keep the machine busy: alone, the slowest takes less than 10 s.
void check_boundary(const Workplace& place, const Boundary& boundary, BoundaryCounts& counts);

}  // namespace capstan::testing
