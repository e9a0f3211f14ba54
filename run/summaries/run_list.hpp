// The runs in some folders, with what each is: `capstan list`. It reads configurations and metrics, no weights.
// tests/cli/runs/test_strange_runs.cpp and test_old_runs.cpp hold that no run stops the list.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "run/summaries/run_record.hpp"

namespace capstan {

/// A line of `capstan list`. A run that cannot be read is listed all the same, with the problem.
struct ListedRun {
  std::string folder, kind, data, metric;  // metric: by which the score is measured; empty: not validated
  std::string of;                          // evaluated_on()
  double score = NAN;
  int64_t step = 0, bytes = 0;
  double age = 0;       // seconds since something was written
  std::string problem;  // why it could not be read; empty: it could
};

/// The runs of run_folders(), the one that was written last first.
std::vector<ListedRun> list_runs(const std::vector<std::string>& folders);

void print_text(const std::vector<ListedRun>& runs, std::ostream& out, size_t width);
/// A list of objects on one line.
void print_json(const std::vector<ListedRun>& runs, std::ostream& out);

}  // namespace capstan
