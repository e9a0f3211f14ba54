#include "data/text/mixture.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.hpp"

namespace capstan {

Mixture::Mixture(const std::vector<double>& weights, int64_t places) : places_(places) {
  check(!weights.empty(), "mixture: there are no weights");
  check(places >= 0, "mixture: {} places", places);
  for (const double weight : weights)
    check(weight > 0 && std::isfinite(weight), "mixture: weight {} is not a number above 0", weight);
  // Shares of the largest weight, whose sum cannot overflow.
  const double largest = *std::max_element(weights.begin(), weights.end());
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0,
                                       [largest](double sum, double weight) { return sum + weight / largest; });
  std::vector<double> remainders;
  for (const double weight : weights) {
    const double quota = static_cast<double>(places) * (weight / largest / total);
    counts_.push_back(static_cast<int64_t>(std::floor(quota)));
    remainders.push_back(quota - std::floor(quota));
  }
  std::vector<size_t> order(weights.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return remainders[a] > remainders[b]; });
  const int64_t dealt = std::accumulate(counts_.begin(), counts_.end(), int64_t{0});
  for (size_t i = 0; i < static_cast<size_t>(places - dealt); ++i) ++counts_[order[i]];
}

Mixture::Turn Mixture::at(int64_t place) const {
  check(place >= 0 && place < places_, "mixture: place {} of {}", place, places_);
  int64_t number = place, places = places_;  // among those that the sources so far have left
  for (size_t source = 0; source + 1 < counts_.size(); ++source) {
    const int64_t count = counts_[source];
    const int64_t before = number * count / places;
    if ((number + 1) * count / places > before) return {source, before};
    number -= before;
    places -= count;
  }
  return {counts_.size() - 1, number};
}

}  // namespace capstan
