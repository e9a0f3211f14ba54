// How well the probabilities of a class put the texts that have it in front of the others: average precision and curves
// for `capstan eval` and reports. tests/train/test_decision.cpp compares them with scikit-learn's.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "train/evaluation/label_report.hpp"

namespace capstan {

/// The probabilities of all texts, class by class. Of more than max_values, none are kept, and there are no figures.
class RankedTexts {
 public:
  static constexpr int64_t max_values = 50'000'000;

  /// `texts`: as many as will be added, at most.
  RankedTexts(int64_t classes, int64_t texts);

  /// truth(c): has the text class c?
  template <class Truth>
  void add(const float* probabilities, const Truth& truth) {
    if (!kept_) return;
    for (size_t c = 0; c < positive_.size(); ++c)
      (truth(static_cast<int64_t>(c)) ? positive_ : negative_)[c].push_back(probabilities[c]);
  }

  bool kept() const { return kept_; }
  /// The sum over the distinct probabilities of a class, from the highest, of precision times the rise in recall, as in
  /// scikit-learn; none where no text has the class, or the model has not.
  std::optional<double> average_precision(int64_t c) const;
  /// The mean over the classes that have an average precision; none if no class has.
  std::optional<double> mean_average_precision() const;
  /// The counts of a class if texts are given it from this probability on; all 0 where none are kept.
  LabelCounts at(int64_t c, double threshold) const;

 private:
  bool kept_;
  std::vector<std::vector<float>> positive_, negative_;  // by class
};

}  // namespace capstan
