// Counts pairs of true and predicted class in a map, since the square of many classes would not fit into memory, and
// computes all figures from these counts: tests/train/test_classification_report.cpp.
#include "train/evaluation/classification_report.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"

namespace capstan {
namespace {

double quotient(double part, int64_t whole) { return whole > 0 ? part / static_cast<double>(whole) : 0; }

}  // namespace

ClassificationReport::ClassificationReport(int64_t classes, DecisionRule rule, int64_t unseen)
    : predicted_classes_(classes),
      rule_(std::move(rule)),
      of_class_(static_cast<size_t>(classes + unseen)),
      predicted_as_(of_class_) {
  check(classes > 0, "classification report: {} classes", classes);
}

void ClassificationReport::add(const float* probabilities, int64_t truth) {
  check(truth >= 0 && truth < classes(), "classification report: class {} is outside [0, {})", truth, classes());
  const int64_t predicted = decide(rule_, probabilities, predicted_classes_);
  const int64_t likeliest = decide({}, probabilities, predicted_classes_);
  const auto confidence = static_cast<double>(probabilities[likeliest]);
  ++examples_;
  ++counts_[{truth, predicted}];
  ++of_class_[static_cast<size_t>(truth)];
  ++predicted_as_[static_cast<size_t>(predicted)];
  const auto bin = std::clamp<int64_t>(static_cast<int64_t>(confidence * bin_count), 0, bin_count - 1);
  Bin& entry = bins_[static_cast<size_t>(bin)];
  ++entry.examples;
  entry.correct += likeliest == truth ? 1 : 0;
  entry.confidence += confidence;
  Bin& percent = by_percent_[static_cast<size_t>(
      std::clamp<int64_t>(static_cast<int64_t>(confidence * static_cast<double>(percents)), 0, percents - 1))];
  ++percent.examples;
  percent.correct += predicted == truth ? 1 : 0;
}

std::vector<CoveragePoint> ClassificationReport::coverage() const {
  std::vector<CoveragePoint> points;
  for (const int64_t least : {30, 50, 70, 80, 90, 95, 99}) {
    int64_t answered = 0, right = 0;
    for (int64_t percent = least; percent < percents; ++percent) {
      answered += by_percent_[static_cast<size_t>(percent)].examples;
      right += by_percent_[static_cast<size_t>(percent)].correct;
    }
    points.push_back({static_cast<double>(least) / static_cast<double>(percents),
                      quotient(static_cast<double>(answered), examples_),
                      quotient(static_cast<double>(right), answered)});
  }
  return points;
}

int64_t ClassificationReport::count(int64_t truth, int64_t predicted) const {
  const auto found = counts_.find({truth, predicted});
  return found == counts_.end() ? 0 : found->second;
}

double ClassificationReport::accuracy() const {
  int64_t correct = 0;
  for (int64_t c = 0; c < classes(); ++c) correct += count(c, c);
  return quotient(static_cast<double>(correct), examples_);
}

double ClassificationReport::precision(int64_t c) const {
  return quotient(static_cast<double>(count(c, c)), predicted_as(c));
}

double ClassificationReport::recall(int64_t c) const { return quotient(static_cast<double>(count(c, c)), of_class(c)); }

double ClassificationReport::f1(int64_t c) const {
  return quotient(2 * static_cast<double>(count(c, c)), of_class(c) + predicted_as(c));
}

int64_t ClassificationReport::occurring() const {
  int64_t count = 0;
  for (int64_t c = 0; c < classes(); ++c) count += occurs(c) ? 1 : 0;
  return count;
}

double ClassificationReport::macro_f1() const {
  double sum = 0;
  for (int64_t c = 0; c < classes(); ++c) sum += f1(c);  // a class that does not occur adds 0
  return quotient(sum, occurring());
}

double ClassificationReport::calibration_error() const {
  double sum = 0;
  for (const Bin& bin : bins_) sum += std::abs(static_cast<double>(bin.correct) - bin.confidence);
  return quotient(sum, examples_);
}

std::vector<CalibrationBin> ClassificationReport::calibration() const {
  std::vector<CalibrationBin> filled;
  for (const Bin& bin : bins_) {
    const auto examples = static_cast<double>(bin.examples);
    if (bin.examples > 0)
      filled.push_back({bin.confidence / examples, static_cast<double>(bin.correct) / examples, bin.examples});
  }
  return filled;
}

std::vector<Confusion> most_frequent_confusions(const ClassificationReport& report, size_t limit) {
  std::vector<Confusion> all;
  for (const auto& [pair, count] : report.counts())
    if (pair.first != pair.second) all.push_back({count, pair.first, pair.second});
  std::stable_sort(all.begin(), all.end(), [](const Confusion& a, const Confusion& b) { return a.count > b.count; });
  if (all.size() > limit) all.resize(limit);
  return all;
}

DecisionFigures figures_of(const ClassificationReport& report, const DecisionGoal& goal) {
  DecisionFigures figures{report.rule()};
  double cost = 0;
  for (const auto& [pair, count] : report.counts()) {
    if (pair.first == pair.second) figures.correct += count;
    if (goal.kind == DecisionGoal::Kind::cost)
      cost += static_cast<double>(count) * goal.rule[static_cast<size_t>(pair.first * report.classes() + pair.second)];
  }
  figures.macro_f1 = report.macro_f1();
  if (goal.kind == DecisionGoal::Kind::f1) figures.f1 = report.f1(goal.label);
  if (goal.kind == DecisionGoal::Kind::precision) figures.recall = report.recall(goal.label);
  if (goal.kind == DecisionGoal::Kind::recall) figures.precision = report.precision(goal.label);
  if (goal.kind == DecisionGoal::Kind::cost)
    figures.cost = cost / static_cast<double>(std::max<int64_t>(report.examples(), 1));
  return figures;
}

DecisionFigures decide_held_out(const HeldOutPredictions& held_out, const DecisionGoal& goal) {
  const FoundRule found = best_rule(held_out, goal);
  ClassificationReport report(held_out.classes(), found.rule);
  for (int64_t i = 0; i < held_out.size(); ++i) report.add(held_out.probabilities(i), held_out.truth(i));
  DecisionFigures figures = figures_of(report, goal);
  figures.found = found;
  return figures;
}

}  // namespace capstan
