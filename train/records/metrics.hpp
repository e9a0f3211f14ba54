// metrics.jsonl: one JSON object per line, in the order of steps.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "core/io/file.hpp"
#include "core/io/hash.hpp"

namespace capstan {

/// What a checkpoint records of metrics.jsonl: its first bytes belong to the steps of the checkpoint.
struct MetricsMark {
  int64_t bytes = -1;  // -1: not recorded
  std::string checksum;
};

class MetricsFile {
 public:
  using Warn = std::function<void(const std::string& line)>;

  /// For a run that is at `step`, from a checkpoint with this mark. What follows the mark is removed by the first call
  /// of add() or sync(), so that a resumed run has no line twice; a run that has nothing left to do changes nothing.
  /// Without a mark, lines of later steps and a half-written one at the end are removed. A damaged file is copied to
  /// metrics.jsonl.damaged-N first, with a warning, and keeps its readable lines up to `step`. With `own` false, the
  /// mark is that of another run perhaps, and may differ.
  MetricsFile(std::string path, int64_t step, const MetricsMark& mark, bool own, const Warn& warn);

  /// `line` must have an integer "step". It has been written on return, but may be lost in a power failure before
  /// sync().
  void add(const nlohmann::json& line);
  /// Returns when all lines are on the disk.
  MetricsMark sync();

 private:
  FileWriter& file();
  void keep(std::string_view text);
  void salvage(const std::string& content, int64_t step, bool damaged, const Warn& warn);

  std::string path_;
  int64_t kept_ = 0;  // bytes
  Hash hash_;         // of these
  std::optional<FileWriter> file_;
  bool named_ = false;  // its name is on the disk
};

/// From now on, `sink` gets each line of any run when it has been written, on the thread that trains; empty: nobody
/// does.
void set_record_sink(std::function<void(const std::string& line)> sink);

/// What can be read of a text of metrics.jsonl.
struct MetricsText {
  std::string kept;            // the whole lines of steps up to a step
  int64_t lines = 0, bad = 0;  // kept lines; lines that are no JSON, have no step or are not in order
};
MetricsText readable_metrics(std::string_view text, int64_t step);

}  // namespace capstan
