// What a run folder tells about a run without its weights: the configuration and metrics.jsonl.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/runs/run_config.hpp"

namespace capstan {

/// A line of training. Numbers that the run could not tell (a loss over no target) are NAN.
struct TrainPoint {
  int64_t step = 0, epoch = 0, tokens = 0;
  double seconds = 0, loss = 0, learning_rate = 0, gradient_norm = 0, tokens_per_second = 0;
  int64_t rss_bytes = 0, peak_rss_bytes = 0;
};

/// A line of validation.
struct ValidPoint {
  int64_t step = 0;
  double seconds = 0, loss = 0, bits = 0, accuracy = 0;
};

struct RunRecord {
  std::string folder;
  RunConfig config;
  std::vector<TrainPoint> train;
  std::vector<ValidPoint> valid;

  int64_t step = 0;              // the last that metrics.jsonl tells of
  double seconds = 0;            // of training until then
  double train_loss = 0;         // the last
  double tokens_per_second = 0;  // median over the lines of training
  int64_t peak_rss_bytes = 0;
  std::optional<ValidPoint> best;  // by train.monitor
};

/// Throws Error when the folder is no run's, or its metrics tell of no step yet.
RunRecord read_record(const std::filesystem::path& folder);
/// Those of several folders, the lowest validation loss first, then by training loss those without validation. A folder
/// without a record is left out with a warning (and a plain file without one: runs/* holds any).
/// Throws Error when none is left.
std::vector<RunRecord> read_records(const std::vector<std::string>& folders);

/// Keys in which the runs differ, each with its value in every run (in their order). Keys that only some of the runs
/// have are left out: the `type` above them differs, or the number of entries of a list, and those are keys too.
struct DifferingKey {
  std::string path, short_name;  // short_name: the shortest end of the path that no other differing key has
  std::vector<std::string> values;
};
std::vector<DifferingKey> differing_keys(const std::vector<RunRecord>& runs);

/// For each of `paths` the shortest end that says what it is and is the end of no other path.
std::vector<std::string> short_names(const std::vector<std::string>& paths);

}  // namespace capstan
