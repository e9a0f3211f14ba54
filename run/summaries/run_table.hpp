// Comparison of runs: the tables of `capstan compare`, `capstan sweep` and `capstan report`, of which scripts read the
// CSV. tests/run/test_run_table.cpp holds rows and columns.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "run/summaries/comparable_runs.hpp"
#include "run/summaries/differing_keys.hpp"
#include "run/summaries/text_table.hpp"

namespace capstan {

/// people: rounded values and short keys; programs: all digits and full paths of keys.
enum class TableStyle { people, programs };

/// A row per run: the keys in which they differ, losses, accuracy, time, memory.
Table run_table(const std::vector<RunRecord>& runs, TableStyle style);

/// run_table() without the columns that say nothing, and without those that are the same in all of several runs, which
/// are in `common`: "step 200".
struct RunComparison {
  std::vector<std::string> common;
  Table table;
};
RunComparison compared(const std::vector<RunRecord>& runs);

/// One row per group of runs that differ only in their seed or in data.fold: mean ± standard deviation (of the sample,
/// n - 1) of the best validation loss (of the last training loss if a run has no validation) and of its accuracy.
/// Groups are in the order of their first runs. No rows when no two runs belong together.
Table seed_table(const std::vector<RunRecord>& runs);

/// "linear-classifier: 5452 texts of train.tsv, cross-validated".
std::string what_is_compared(const std::vector<RunRecord>& group);

/// What compared() gives, with what all runs have in common in a line above, and, with a line of explanation,
/// seed_table(). Groups of comparable() runs are in blocks, each with what_is_compared() above.
void print_comparison(const std::vector<RunRecord>& runs, std::ostream& out, size_t width = 0);

}  // namespace capstan
