// Which class a text is given, by the probabilities of all: the likeliest, or another rule that serves a goal
// (train.monitor) better. Validations find the rule, runs save it, and every command that predicts decides by it. The
// rule must not depend on the order of texts, or the number of ranks would change it: tests/train/test_decision.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace capstan {

/// How a class follows from probabilities, which it does not change. Empty: the likeliest class. C factors: the class
/// with the largest product of factor and probability. C C costs, row-major (true class, given class): the class with
/// the lowest expected cost. Of equally good classes it is the first.
using DecisionRule = std::vector<double>;
/// The class that a rule gives a text with these probabilities, (classes).
int64_t decide(const DecisionRule& rule, const float* probabilities, int64_t classes);

/// What decisions shall be good at (train.monitor).
struct DecisionGoal {
  enum class Kind {
    given,      // nothing that a rule is found for: `rule` is used, such as the weights of the classes
    macro_f1,   // the mean of the classes' F1
    f1,         // the F1 of class `label`
    recall,     // a recall of class `label` of `at_least`, with the highest precision
    precision,  // a precision of class `label` of `at_least`, with the highest recall
    cost,       // the costs of mistakes: `rule`
  } kind = Kind::given;
  int64_t classes = 0, label = -1;
  DecisionRule rule = {};
  double at_least = 0;
  bool finds_rule() const { return kind != Kind::given && kind != Kind::cost; }
};

/// The probabilities of texts that a model has not learnt from, with their classes.
class HeldOutPredictions {
 public:
  explicit HeldOutPredictions(int64_t classes) : classes_(classes) {}
  void add(const float* probabilities, int64_t truth);
  int64_t classes() const { return classes_; }
  int64_t size() const { return static_cast<int64_t>(truths_.size()); }
  const float* probabilities(int64_t i) const { return probabilities_.data() + i * classes_; }
  int64_t truth(int64_t i) const { return truths_[static_cast<size_t>(i)]; }

  /// All predictions as bytes, for another process; add() takes these. Throws std::invalid_argument for another number
  /// of classes.
  std::string bytes() const;
  void add(std::string_view bytes);
  /// Puts the predictions into an order that does not depend on the order in which they came. best_rule() needs it.
  void sort();

 private:
  int64_t classes_;
  std::vector<float> probabilities_;
  std::vector<int32_t> truths_;
};

/// A rule, and what rules gain: found on one half of the texts, on the other half, with its standard error.
struct FoundRule {
  DecisionRule rule;
  double gain = 0, gain_error = 0;  // of F1
};

/// The rule for a goal: goal.rule; for a recall or a precision, the factor of the class that reaches it; or for F1
/// factors that are found one class after the other. For F1, a text counts half by its label and half by its
/// probabilities, since for a rare class chance would choose among few labels. Empty where rules gain no more than the
/// standard error, and where no factor reaches a precision. May stop (core/base/stop.hpp).
FoundRule best_rule(const HeldOutPredictions& held_out, const DecisionGoal& goal);

}  // namespace capstan
