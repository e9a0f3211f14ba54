// The decisions of a multi-label classifier on a split, counted for every threshold at once: a validation chooses its
// threshold from them, without a second pass. tests/train/test_label_report.cpp compares the figures with
// scikit-learn's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace capstan {

/// The threshold of a model that was never evaluated.
constexpr double default_threshold = 0.5;

/// Does a text have a label of this probability?
inline bool reaches(float probability, double threshold) { return probability >= static_cast<float>(threshold); }

/// What was decided about one label, or about all together. A quotient without cases is 0, as in scikit-learn with
/// zero_division=0.
struct LabelCounts {
  int64_t right = 0;      // texts that have the label and were given it
  int64_t predicted = 0;  // texts that were given the label
  int64_t actual = 0;     // texts that have the label
  double precision() const;
  double recall() const;
  double f1() const;
};

/// P@k: mean share of a text's k likeliest labels that it has; of equal probabilities, the first label is taken first.
/// A text without labels counts as 0.
struct PrecisionAt {
  int64_t k = 0;
  double precision = 0;
};

/// What decisions at one threshold, or at one per label, are worth.
struct LabelFigures {
  double threshold = default_threshold;
  std::vector<double> thresholds = {};  // by label; empty: `threshold` is that of all labels
  std::vector<LabelCounts> of_label;
  LabelCounts all;  // summed over the labels: micro-averages
  int64_t texts = 0;
  int64_t exact = 0;  // texts that were given all of their labels and no other
  /// For k = 1, 3, 5, as far as there are so many labels. Does not depend on the threshold.
  std::vector<PrecisionAt> precision_at = {};
  double macro_f1() const;  // mean of f1 over all labels
  double accuracy() const;  // exact / texts
};

/// Counts are integers, so the order of the texts does not matter.
class LabelReport {
 public:
  /// With `thresholds`, one per label, decisions are counted at these alone: at(default_threshold) has them.
  explicit LabelReport(int64_t labels, std::vector<double> thresholds = {});

  /// One text: the probability of each label, and 1 for those that it has, 0 for others.
  void add(const float* probabilities, const int32_t* truth);

  int64_t labels() const { return labels_; }
  int64_t texts() const;
  /// The threshold of 0.01, ... 0.99 with the highest micro-F1; ties go to the nearest to 0.5, then the lower.
  double best_threshold() const;
  /// For each label the threshold with its highest F1, where counts of all labels together stand for ten more texts of
  /// the label: for a rare one, chance would choose. Ties go to the nearest to best_threshold(). May stop.
  std::vector<double> best_thresholds() const;
  /// The figures at one of 0.01, ... 0.99; throws std::invalid_argument for another threshold.
  LabelFigures at(double threshold) const;

  /// All counts, for another process; add() takes them. Throws std::invalid_argument for another number of labels.
  std::string bytes() const;
  void add(std::string_view bytes);

 private:
  static size_t place(int64_t label, bool has_it, int level) {
    return static_cast<size_t>((2 * label + (has_it ? 1 : 0)) * levels + level);
  }
  int64_t count(int64_t label, bool has_it, int level) const { return counts_[place(label, has_it, level)]; }
  /// The index of entry `index` of what follows the counts of labels.
  size_t tail(size_t index) const { return static_cast<size_t>(2 * labels_ * levels) + index; }
  LabelCounts of_label(int64_t label, int level) const;

  /// A probability's level is the number of thresholds that it reaches.
  static constexpr int levels = 100;

  int64_t labels_;
  std::vector<double> thresholds_;
  // (labels, has it, level); then, by level (levels + 1), how many more texts are exact than one level below, the hits
  // of the 1, 3 and 5 likeliest labels, and the number of texts. One vector, so that ranks can add it up.
  std::vector<int64_t> counts_;
};

}  // namespace capstan
