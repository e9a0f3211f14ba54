// The runs that there are, with what each is: `capstan compare` without runs. It reads configurations and metrics, no
// weights. tests/cli/runs/test_strange_runs.cpp and test_eval.cpp hold that no run stops the list.
#pragma once

#include <string>
#include <vector>

#include "run/summaries/text_table.hpp"

namespace capstan {

struct RunList {
  Table table;                        // a row per run, the one that was written last first
  std::vector<std::string> problems;  // a line for each run that cannot be read; it is in the table all the same
};

/// The runs in the folder runs, where recipes put them. Without any, the table is empty, and the log says how one is
/// made.
RunList list_recent_runs();

}  // namespace capstan
