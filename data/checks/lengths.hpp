// How long texts are.
#pragma once

#include <cstdint>
#include <vector>

namespace capstan {

struct LengthSummary {
  int64_t least = 0, median = 0, most_of = 0, greatest = 0;  // most_of: 95 % are at most that long
  double mean = 0;
};

/// All zero for no lengths.
LengthSummary summary_of(std::vector<int64_t> lengths);

}  // namespace capstan
