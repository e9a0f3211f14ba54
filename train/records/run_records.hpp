// What a run records while it trains: metrics.jsonl and, if wanted, event files.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "train/records/event_file.hpp"
#include "train/records/metrics.hpp"

namespace capstan {

class RunRecords {
 public:
  struct Options {
    std::string metrics_path;
    std::string event_folder = {};  // empty: no event files
    int64_t step = 0;               // of the run that begins or goes on
    MetricsMark mark = {};          // of its checkpoint
    bool own = true;                // the checkpoint is the folder's own
    bool open_window = false;       // the checkpoint was saved between two logged steps
  };
  /// Throws Error for files that cannot be continued.
  RunRecords(const Options& options, const MetricsFile::Warn& warn);

  /// `line` must have an integer "step".
  void add(const nlohmann::json& line);
  /// Returns when all lines are on the disk.
  MetricsMark sync();

 private:
  MetricsFile metrics_;
  std::unique_ptr<EventFile> events_;  // null: off
};

}  // namespace capstan
