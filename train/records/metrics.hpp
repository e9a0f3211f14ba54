// metrics.jsonl: one JSON object per line, in the order of steps. Written by the session of a run; compare,
// report and verify read it. No line that a checkpoint counts may be lost or
// doubled: tests/train/test_run_files.cpp, test_damaged_runs.cpp, test_resume.cpp and tests/fuzz/fuzz_metrics.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "core/io/file.hpp"
#include "core/io/hash.hpp"
#include "train/checkpoints/run_state.hpp"

namespace capstan {

/// What a checkpoint records of metrics.jsonl: its first bytes belong to the steps of the checkpoint.
struct MetricsMark {
  int64_t bytes = -1;    // -1: not recorded
  std::string checksum;  // XXH3-128 of these bytes
};

class MetricsFile {
 public:
  using Warn = std::function<void(const std::string& line)>;

  /// For a run that is at `step`, from a checkpoint with this mark. What follows the mark is removed by the first call
  /// of add() or sync(), so that a resumed run has no line twice; a run that has nothing left to do changes nothing.
  /// Without a mark, lines of later steps and a half-written one at the end are removed. A damaged file is copied to
  /// metrics.jsonl.damaged-N first, with a warning, and keeps its readable lines up to `step`. `own` false: the
  /// checkpoint was chosen by a user, and may be an earlier one, whose later lines are kept in
  /// metrics.jsonl.replaced-N, or one of another folder, whose mark does not fit.
  MetricsFile(std::string path, int64_t step, const MetricsMark& mark, bool own, const Warn& warn);

  /// `line` must have an integer "step". It has been written on return, but may be lost in a power failure before
  /// sync().
  void add(const nlohmann::json& line);
  /// Returns when all lines are on the disk.
  MetricsMark sync();

 private:
  /// The open file, shortened to what is kept before it is first written to.
  FileWriter& file();
  /// Counts the text as part of the file.
  void keep(std::string_view text);
  /// Keeps the readable lines; copies the file first if it is damaged.
  void salvage(const std::string& content, int64_t step, bool damaged, const Warn& warn);

  std::string path_;
  int64_t kept_ = 0;  // bytes of the file that are kept or were written
  Hash hash_;         // of the kept bytes
  std::optional<FileWriter> file_;
  bool named_ = false;  // its name is on the disk
};

/// From now on, `sink` gets each line of any run when it has been written, on the thread that trains; empty: nothing
/// does. For the Python package; one for the whole process, so not for several runs at once.
void set_record_sink(std::function<void(const std::string& line)> sink);

/// The metrics.jsonl in a run's folder, whose last checkpoint has this state; null: there is none. Empty where neither
/// has anything. Throws Error unless the text begins with what the state has recorded, and goes on with lines of the
/// steps that follow; what a kill has cut at the end is no damage.
std::string read_metrics(const std::filesystem::path& folder, const RunState* last);

/// What can be read of a text of metrics.jsonl.
struct MetricsText {
  std::string kept;            // the whole lines of steps up to a step
  int64_t lines = 0, bad = 0;  // kept lines; lines that are no JSON, have no step or are not in order
};
MetricsText readable_metrics(std::string_view text, int64_t step);

}  // namespace capstan
