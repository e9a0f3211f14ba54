// The decisions of a multi-label classifier on a split, counted for every threshold at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capstan {

/// The threshold of a model that was never evaluated.
constexpr double usual_threshold = 0.5;

/// Does a text have a label of this probability?
inline bool reaches(float probability, double threshold) { return probability >= static_cast<float>(threshold); }

/// What was decided of one label, or of all together. A quotient without cases is 0, as in scikit-learn with
/// zero_division=0.
struct LabelCounts {
  int64_t right = 0;      // texts that have it and were given it
  int64_t predicted = 0;  // texts that were given it
  int64_t actual = 0;     // texts that have it
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

/// At one threshold, or at one per label.
struct LabelFigures {
  double threshold = usual_threshold;
  std::vector<double> thresholds = {};  // by label; empty: the one
  std::vector<LabelCounts> of_label;
  LabelCounts all;  // summed over the labels: micro-averages
  int64_t texts = 0;
  int64_t exact = 0;                          // texts that were given all of their labels and no other
  std::optional<double> cost = std::nullopt;  // mean, where the goal is costs
  std::vector<PrecisionAt> precision_at =
      {};                   // k = 1, 3, 5, as far as there are so many labels; no matter the threshold
  double macro_f1() const;  // mean of f1 over all labels
  double accuracy() const;  // exact / texts
};

/// Counts are integers, so the order of the texts does not matter.
class LabelReport {
 public:
  /// With `thresholds`, one per label, decisions are counted at these alone: at(usual_threshold) has them.
  explicit LabelReport(int64_t labels, std::vector<double> thresholds = {});

  /// One text: the probability of each label, and 1 for those that it has, 0 for others.
  void add(const float* probabilities, const int32_t* truth);

  int64_t labels() const { return labels_; }
  int64_t texts() const;
  /// The one of 0.01, ... 0.99 with the highest micro-F1; ties go to the nearest to 0.5, then the lower.
  double best_threshold() const;
  /// For each label that with its highest F1, as if a few more texts had the label for which all labels together speak:
  /// of a rare label, chance would choose. Of equally good ones the nearest to best_threshold().
  std::vector<double> best_thresholds() const;
  /// Throws std::invalid_argument for other thresholds than these.
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
  // (labels, has it, level); then the rises and falls over the levels of the texts that are exact (levels + 1), the
  // hits of the 1, 3 and 5 likeliest labels, and the number of texts.
  std::vector<int64_t> counts_;
};

}  // namespace capstan
