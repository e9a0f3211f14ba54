#include "data/checks/lengths.hpp"

#include <algorithm>
#include <numeric>

namespace capstan {

LengthSummary summary_of(std::vector<int64_t> lengths) {
  if (lengths.empty()) return {};
  std::sort(lengths.begin(), lengths.end());
  const size_t count = lengths.size();
  const auto sum = static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), int64_t{0}));
  return {lengths.front(), lengths[(count - 1) / 2], lengths[(count * 95 + 99) / 100 - 1], lengths.back(),
          sum / static_cast<double>(count)};
}

}  // namespace capstan
