// The record of a run without its weights: configuration and metrics.jsonl.
#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "run/setup/run_config.hpp"

namespace capstan {

/// A line of training. Values that the run does not have (a loss without targets) are NAN.
struct TrainPoint {
  int64_t step = 0, epoch = 0, tokens = 0;
  double seconds = 0, loss = 0, learning_rate = 0, gradient_norm = 0, tokens_per_second = 0;
  int64_t rss_bytes = 0, peak_rss_bytes = 0;
};

/// A line of validation.
struct ValidPoint {
  int64_t step = 0;
  double seconds = 0, loss = 0, bits = 0, accuracy = 0;
  double micro_f1 = NAN, macro_f1 = NAN;  // NAN unless multi-label
  int64_t targets = 0;
};

struct RunRecord {
  std::string folder;
  RunConfig config;
  std::vector<TrainPoint> train;
  std::vector<ValidPoint> valid;

  int64_t step = 0;              // the last step in metrics.jsonl
  double seconds = 0;            // of training up to that step
  double train_loss = 0;         // the last one
  double tokens_per_second = 0;  // median over the lines of training
  int64_t peak_rss_bytes = 0;
  std::optional<ValidPoint> best;  // by train.monitor
};

/// The value of one measure; the smaller, the better: accuracy and F1 are negative. NAN if the run has no such value.
double cost_of(const ValidPoint& point, Monitor monitor);
/// Is `a` better than `b` by more than chance explains? For accuracies: by more than the standard error of b's. For other
/// measures, whose error is not known: at all.
bool clearly_better(const ValidPoint& a, const ValidPoint& b, Monitor monitor);

/// Throws Error when the folder is not that of a run, or when its metrics have no step yet.
RunRecord read_record(const std::filesystem::path& folder);
/// Records of several folders, the best first: by the measure that train.monitor names, by validation loss if the runs
/// differ in that (with a warning). Those without validation follow, sorted by training loss. A folder without a record
/// is left out with a warning; plain files are ignored, since runs/* may match some. Throws Error when no record is left.
std::vector<RunRecord> read_records(const std::vector<std::string>& folders);

/// A key in which the runs differ, with its value in each run. Keys that only some of the runs have are left out: there
/// a `type` or the length of a list differs, which is a key itself.
struct DifferingKey {
  std::string path, short_name;  // short_name: the shortest suffix that no other differing key has
  std::vector<std::string> values;
};
std::vector<DifferingKey> differing_keys(const std::vector<RunRecord>& runs);

/// For each path the shortest suffix that is meaningful and not a suffix of another path.
std::vector<std::string> short_names(const std::vector<std::string>& paths);

}  // namespace capstan
