// The lines of metrics.jsonl that a piece of a run should have written, compared one by one with those that it has: the
// part of a replay (replay.hpp) that no checkpoint holds. tests/cli/runs/test_replay.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace capstan {

/// Steps from which and up to which lines are compared. Those of the first one belong to the piece before, unless it is
/// where the run began.
struct StepRange {
  int64_t from = 0, to = std::numeric_limits<int64_t>::max();
  bool ends_with_line = false;  // the run logs the last step, whether it ends there or not
  bool contains(int64_t step) const { return (step > from || (step == 0 && from == 0)) && step <= to; }
};

struct MetricsLine {
  std::string name;      // "valid of step 6"
  nlohmann::json event;  // without what belongs to the session or the machine
};

struct MetricsPiece {
  std::vector<MetricsLine> lines;   // in the order of the file
  std::vector<int64_t> unreadable;  // numbers of lines that no run has written; of any steps, since they name none
};

/// The lines in a run's folder. A last one that a kill has cut is left out, as by a run that goes on.
MetricsPiece metrics_of(const std::filesystem::path& folder, const StepRange& steps);

std::set<int64_t> validated_steps(const MetricsPiece& piece);

/// The first line that differs, is absent, too many or in another place; empty if all are the same.
std::string metrics_difference(const MetricsPiece& saved, const MetricsPiece& computed, const StepRange& steps);

}  // namespace capstan
