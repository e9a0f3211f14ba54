#include "train/evaluation/ranked_texts.hpp"

#include <algorithm>
#include <functional>

namespace capstan {

RankedTexts::RankedTexts(int64_t classes, int64_t texts)
    : kept_(texts <= most_values / std::max<int64_t>(classes, 1)),
      positive_(static_cast<size_t>(kept_ ? classes : 0)),
      negative_(positive_.size()) {}

std::optional<double> RankedTexts::average_precision(int64_t c) const {
  if (!kept_ || positive_[static_cast<size_t>(c)].empty()) return std::nullopt;
  std::vector<float> with = positive_[static_cast<size_t>(c)], without = negative_[static_cast<size_t>(c)];
  std::sort(with.begin(), with.end(), std::greater<>());
  std::sort(without.begin(), without.end(), std::greater<>());
  double sum = 0;
  size_t found = 0, wrong = 0;
  while (found < with.size()) {
    const float threshold = with[found];
    const size_t before = found;
    while (found < with.size() && with[found] == threshold) ++found;
    while (wrong < without.size() && without[wrong] >= threshold) ++wrong;
    sum += static_cast<double>(found - before) * static_cast<double>(found) / static_cast<double>(found + wrong);
  }
  return sum / static_cast<double>(with.size());
}

std::optional<double> RankedTexts::mean_average_precision() const {
  double sum = 0;
  int64_t count = 0;
  for (size_t c = 0; c < positive_.size(); ++c)
    if (const auto found = average_precision(static_cast<int64_t>(c))) {
      sum += *found;
      ++count;
    }
  return count > 0 ? std::optional(sum / static_cast<double>(count)) : std::nullopt;
}

LabelCounts RankedTexts::at(int64_t c, double threshold) const {
  const auto reaching = [&](const std::vector<float>& all) {
    return std::count_if(all.begin(), all.end(), [&](float probability) { return reaches(probability, threshold); });
  };
  if (!kept_) return {};
  const std::vector<float>&with = positive_[static_cast<size_t>(c)], &without = negative_[static_cast<size_t>(c)];
  const int64_t right = reaching(with);
  return {right, right + reaching(without), static_cast<int64_t>(with.size())};
}

}  // namespace capstan
