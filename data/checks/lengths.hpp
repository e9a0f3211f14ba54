// How long texts are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace capstan {

struct LengthSummary {
  int64_t least = 0, median = 0, most_of = 0, greatest = 0;  // most_of: 95 % are at most that long
  double mean = 0;
};

/// All zero for no lengths.
inline LengthSummary summary_of(std::vector<int64_t> lengths) {
  if (lengths.empty()) return {};
  std::sort(lengths.begin(), lengths.end());
  const size_t count = lengths.size();
  const auto sum = static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), int64_t{0}));
  return {lengths.front(), lengths[(count - 1) / 2], lengths[(count * 95 + 99) / 100 - 1], lengths.back(),
          sum / static_cast<double>(count)};
}

}  // namespace capstan
