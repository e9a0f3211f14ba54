// The measures of a validation. A measure is one row of the table in metrics.cpp (docs/adding.md): train.monitor,
// metrics.jsonl, the log, state.json, `capstan compare` and `capstan eval` follow from it. Names are read from the
// files of old runs, so they must not change.
// tests/train/test_evaluation.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/evaluation/evaluate.hpp"

namespace capstan {

struct Metric {
  const char* name;     // in metrics.jsonl and `capstan eval`; in state.json after best_
  const char* monitor;  // in train.monitor
  const char* title;    // in the log and in tables
  enum class Better { lower, higher } better;
  enum class Unit { nats, share, number } unit;
  /// Which models have the measure: all, classifiers that give a text one label, any number of labels, or either.
  enum class Of { all, one_label, label_sets, classes } of;
  bool of_targets;  // a share of the targets, whose standard error follows from their number
  /// Nothing where the model's task has no such measure.
  std::optional<double> (*compute)(const Validation&);

  /// The smaller, the better.
  double cost(double value) const { return better == Better::lower ? value : -value; }
  /// "loss 1.2345", "accuracy 87.22 %".
  std::string text(double value) const;
};

/// The first is the loss.
const std::vector<Metric>& metrics();
/// The measure of this name in train.monitor. Throws std::invalid_argument for an unknown name.
const Metric& metric_of(const std::string& monitor);
std::vector<std::string> monitor_names();

}  // namespace capstan
