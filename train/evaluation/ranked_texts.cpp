// Sorts the probabilities of texts with and without a class, and goes through both lists from the highest down. Equal
// probabilities count as one threshold, as in scikit-learn: tests/train/test_decision.cpp.
#include "train/evaluation/ranked_texts.hpp"

#include <algorithm>
#include <functional>

namespace capstan {

RankedTexts::RankedTexts(int64_t classes, int64_t texts)
    : kept_(texts <= max_values / std::max<int64_t>(classes, 1)),
      positive_(static_cast<size_t>(kept_ ? classes : 0)),
      negative_(positive_.size()) {}

std::optional<double> RankedTexts::average_precision(int64_t c) const {
  if (static_cast<size_t>(c) >= positive_.size() || positive_[static_cast<size_t>(c)].empty()) return std::nullopt;
  std::vector<float> with = positive_[static_cast<size_t>(c)], without = negative_[static_cast<size_t>(c)];
  std::sort(with.begin(), with.end(), std::greater<>());
  std::sort(without.begin(), without.end(), std::greater<>());
  double sum = 0;
  size_t right = 0, wrong = 0;
  while (right < with.size()) {
    const float threshold = with[right];
    const size_t before = right;
    while (right < with.size() && with[right] == threshold) ++right;
    while (wrong < without.size() && without[wrong] >= threshold) ++wrong;
    sum += static_cast<double>(right - before) * static_cast<double>(right) / static_cast<double>(right + wrong);
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
  const auto reaching = [&](const std::vector<float>& probabilities) {
    return std::count_if(probabilities.begin(), probabilities.end(),
                         [&](float probability) { return reaches(probability, threshold); });
  };
  if (static_cast<size_t>(c) >= positive_.size()) return {};
  const std::vector<float>&with = positive_[static_cast<size_t>(c)], &without = negative_[static_cast<size_t>(c)];
  const int64_t right = reaching(with);
  return {right, right + reaching(without), static_cast<int64_t>(with.size())};
}

}  // namespace capstan
