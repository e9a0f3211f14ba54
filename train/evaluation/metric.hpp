// The measures of a validation. A measure is one row of the table in metric.cpp: train.monitor, metrics.jsonl, event
// files, the log, state.json, `capstan compare` and `capstan eval` follow from it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace capstan {

struct Validation;

struct Metric {
  const char* name;     // in metrics.jsonl and `capstan eval`; in state.json after best_, in event files after valid/
  const char* monitor;  // in train.monitor
  const char* title;    // in the log and in tables
  enum class Better { lower, higher } better;
  enum class Unit { nats, share, number } unit;
  /// Of which classifiers: all models, those that give a text one label, any number of labels, or either.
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
/// By its name in train.monitor. Throws std::invalid_argument for another.
const Metric& metric_of(const std::string& monitor);
std::vector<std::string> monitor_names();

}  // namespace capstan
