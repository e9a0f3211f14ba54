// Which class a text is given, by the probabilities of all: the likeliest, or another rule that serves a goal better.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/evaluation/label_report.hpp"

namespace capstan {

/// A rule, beside probabilities that it does not change: nothing, for the likeliest class; C factors, for the class
/// with the largest product of factor and probability; or C C costs (true class, given class), for the class with the
/// lowest expected cost. Of equally good classes it is the first.
using DecisionRule = std::vector<double>;
int64_t decide(const DecisionRule& rule, const float* probabilities, int64_t classes);

/// What the mistakes with a label cost where a text has any number of them.
struct LabelCosts {
  double missed = 1;  // the text has it and is not given it
  double wrong = 1;   // it is given it and does not have it
  /// The probability from which giving it is expected to cost less: where p missed = (1 - p) wrong.
  double threshold() const { return missed + wrong > 0 ? wrong / (missed + wrong) : 0.5; }
};

/// What decisions shall be good at (train.monitor).
struct DecisionGoal {
  enum class Kind {
    given,     // nothing that a rule is found for: `rule` is used, such as the weights of the classes
    macro_f1,  // the mean of the classes' F1
    f1,        // the F1 of class `label`
    cost,      // the costs of mistakes: `rule`
  } kind = Kind::given;
  int64_t classes = 0, label = -1;
  DecisionRule rule = {};
  std::vector<LabelCosts> of_labels = {};  // `cost` of any number of labels; `rule` is then their thresholds
  bool finds_rule() const { return kind == Kind::macro_f1 || kind == Kind::f1; }
};

/// The mean cost of a text's labels.
double mean_cost(const LabelFigures& figures, const std::vector<LabelCosts>& costs);

/// The probabilities of texts that a model has not learnt from, with their classes.
class HeldOutPredictions {
 public:
  explicit HeldOutPredictions(int64_t classes) : classes_(classes) {}
  void add(const float* probabilities, int64_t truth);
  int64_t classes() const { return classes_; }
  int64_t size() const { return static_cast<int64_t>(truths_.size()); }
  const float* probabilities(int64_t i) const { return probabilities_.data() + i * classes_; }
  int64_t truth(int64_t i) const { return truths_[static_cast<size_t>(i)]; }

  /// All of them, for another process; add() takes them.
  std::string bytes() const;
  void add(std::string_view bytes);
  /// In an order that does not depend on the one in which they came.
  void sort();

 private:
  int64_t classes_;
  std::vector<float> probabilities_;
  std::vector<int32_t> truths_;
};

/// The rule for a goal. For F1, factors are found one class after the other, with counts that are half of the labels
/// and half of the probabilities: of a rare class, chance would choose among its few labels. Nothing where rules found
/// on one half of the texts are no better on the other by more than the standard error. May stop.
DecisionRule best_rule(const HeldOutPredictions& held_out, const DecisionGoal& goal);

}  // namespace capstan
