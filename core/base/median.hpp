// The median of measurements, where others on the machine make some of them slow. Used for rates and times of steps.
#pragma once

#include <algorithm>
#include <vector>

namespace capstan {

/// The middle value, the upper of the two middle ones for an even count; 0 without values.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace capstan
