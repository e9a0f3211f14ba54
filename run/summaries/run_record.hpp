// The record of a run without its weights: configuration and metrics.jsonl, whose lines train/records/metrics writes.
// Reports, lists, searches and the Python package read runs by it. tests/run/test_run_table.cpp and
// tests/cli/runs/test_report.cpp hold it.
#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "run/setup/run_config.hpp"

namespace capstan {

/// A line of training. Values that the run does not have (a loss without targets) are NAN.
struct TrainPoint {
  int64_t step = 0, epoch = 0, tokens = 0;
  double seconds = 0, loss = 0, learning_rate = 0, gradient_norm = 0, tokens_per_second = 0;
  int64_t rss_bytes = 0, peak_rss_bytes = 0;
};

/// The figures of one validation.
struct ValidPoint {
  int64_t step = 0;
  double seconds = 0, bits = 0;
  int64_t targets = 0;
  std::map<std::string, double> metrics = {};  // by name, as far as there are any
  std::string by = {};                         // Validation::by
  /// NAN if there is no such metric.
  double value(const std::string& metric) const {
    const auto found = metrics.find(metric);
    return found != metrics.end() ? found->second : NAN;
  }
};

/// A run as its folder tells it: what config.yaml, metrics.jsonl and train.log say.
struct RunRecord {
  std::string folder;
  std::string begun, ended;  // "2026-11-24 17:47", of the first and the last line of train.log; empty without these
  RunConfig config;
  std::string data;  // its tokenizer, and the identity of its data, by its last checkpoint; empty without one
  std::vector<TrainPoint> train;
  std::vector<ValidPoint> valid;

  int64_t step = 0;              // the last step in metrics.jsonl
  double seconds = 0;            // of training up to that step
  double train_loss = 0;         // of the last line of training
  double tokens_per_second = 0;  // median over the lines of training
  int64_t peak_rss_bytes = 0;
  std::optional<ValidPoint> best;  // by train.monitor
};

/// The value of one metric as a cost, which is better if smaller: a metric that is better if higher counts negative.
/// NAN if the run has no such value.
double cost_of(const ValidPoint& point, const Metric& metric);
/// Is `a` better than `b` by more than chance explains? For shares of targets: by more than the standard error of b's.
/// For other metrics, whose error is not known: at all.
bool clearly_better(const ValidPoint& a, const ValidPoint& b, const Metric& metric);

/// A run that has not recorded a step.
class NoSteps : public Error {
 public:
  using Error::Error;
};

/// Throws Error when the folder is not that of a run, NoSteps when its metrics have no step yet, and Error when
/// metrics.jsonl is not what its last checkpoint recorded.
RunRecord read_record(const std::filesystem::path& folder);

}  // namespace capstan
