// The predictions of a classifier that gives a text one label, counted class by class: for `capstan eval`, reports, and
// validations with a goal. tests/train/test_classification_report.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "data/batches/batcher.hpp"
#include "models/model.hpp"
#include "train/evaluation/decision.hpp"

namespace capstan {

/// The texts whose likeliest class has a probability in some interval.
struct CalibrationBin {
  double confidence, accuracy;  // mean probability of the likeliest class; share of texts of which it is the class
  int64_t examples;
};

/// The texts whose likeliest class has at least this probability, and how many of them are right.
struct CoveragePoint {
  double probability, coverage, accuracy;  // coverage, accuracy: shares of all texts, and of these
};

/// Counts of (true class, predicted class), and the calibration of the probabilities. A quotient without cases is 0:
/// the precision of a class that was never predicted. Memory is in proportion to the classes and pairs that occur.
class ClassificationReport {
 public:
  /// `rule` decides which class is predicted. `unseen`: further classes that examples have and the model has not.
  explicit ClassificationReport(int64_t classes, DecisionRule rule = {}, int64_t unseen = 0);

  /// One example: its probabilities, one per class, and its true class.
  void add(const float* probabilities, int64_t truth);

  /// Those of the model, then the unseen ones.
  int64_t classes() const { return static_cast<int64_t>(of_class_.size()); }
  const DecisionRule& rule() const { return rule_; }
  int64_t examples() const { return examples_; }
  int64_t count(int64_t truth, int64_t predicted) const;
  int64_t of_class(int64_t truth) const { return of_class_[static_cast<size_t>(truth)]; }
  int64_t predicted_as(int64_t predicted) const { return predicted_as_[static_cast<size_t>(predicted)]; }
  /// The number of examples for each (true class, predicted class) that occurs.
  const std::map<std::pair<int64_t, int64_t>, int64_t>& counts() const { return counts_; }

  double accuracy() const;
  /// Share of the examples predicted as `c` whose class is c.
  double precision(int64_t c) const;
  /// Share of the examples of class `c` that were predicted as c.
  double recall(int64_t c) const;
  /// Harmonic mean of precision and recall of class `c`.
  double f1(int64_t c) const;
  /// Does the class occur in the data or among the predictions?
  bool occurs(int64_t c) const { return of_class(c) + predicted_as(c) > 0; }
  int64_t occurring() const;
  /// Mean of f1 over the classes that occur.
  double macro_f1() const;
  /// Expected calibration error: mean distance between the highest probability and the accuracy of the likeliest class,
  /// over 15 bins of equal width weighted by their examples (Guo et al. 2017, eq. 3).
  double calibration_error() const;
  /// Those of the 15 bins that have examples, by confidence.
  std::vector<CalibrationBin> calibration() const;
  /// What is right if texts below a probability are not answered (`predict --reject`), for some probabilities.
  std::vector<CoveragePoint> coverage() const;

 private:
  static constexpr int64_t bin_count = 15;  // as Guo et al. 2017
  static constexpr int64_t percents = 100;
  struct Bin {
    int64_t examples = 0, correct = 0;
    double confidence = 0;  // summed
  };

  int64_t predicted_classes_, examples_ = 0;
  DecisionRule rule_;
  std::map<std::pair<int64_t, int64_t>, int64_t> counts_;
  std::vector<int64_t> of_class_, predicted_as_;  // (classes): sums of the counts, by true and by predicted class
  std::array<Bin, bin_count> bins_{};
  std::array<Bin, percents> by_percent_{};  // by the probability of the likeliest class; right: by the rule
};

/// How good the decisions of a rule are.
struct DecisionFigures {
  DecisionRule rule;
  int64_t correct = 0;
  double macro_f1 = 0;
  std::optional<double> f1 = std::nullopt;         // of the goal's class
  std::optional<double> recall = std::nullopt;     // of the goal's class, where the goal is a precision
  std::optional<double> precision = std::nullopt;  // of the goal's class, where the goal is a recall
  std::optional<double> cost = std::nullopt;       // mean, where the goal is costs
  FoundRule found = {};                            // where the rule was found with these texts
};
/// The figures of the decisions that a report has counted.
DecisionFigures figures_of(const ClassificationReport& report, const DecisionGoal& goal);
/// The figures of the rule that suits the goal best. It is found and tried on the same texts. May stop.
DecisionFigures decide_held_out(const HeldOutPredictions& held_out, const DecisionGoal& goal);

/// Examples of class `truth` that were predicted as another class.
struct Confusion {
  int64_t count, truth, predicted;
};
/// The most frequent first, at most `limit`.
std::vector<Confusion> most_frequent_confusions(const ClassificationReport& report, size_t limit);

}  // namespace capstan
