// Comparison of runs: the tables of `capstan compare`, `capstan sweep` and `capstan report`, of which scripts read the
// CSV. tests/run/test_run_table.cpp holds rows and columns.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "run/summaries/run_record.hpp"

namespace capstan {

/// Rows of cells; the first row is the header.
using Table = std::vector<std::vector<std::string>>;

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

/// One learning curve: a row per logged step, with the values of training and of validation.
Table curve_table(const RunRecord& run, TableStyle style);

/// Aligned columns: the first to the left, the others to the right. Cells are made printable. With `width` columns of a
/// terminal, what does not fit is in further tables below, each with the first column, and long cells are cut.
void print_text(Table table, std::ostream& out, size_t width = 0);
/// CSV as in RFC 4180, but with line ends of one byte.
void print_csv(const Table& table, std::ostream& out);

/// "linear-classifier: 5452 texts of train.tsv, cross-validated".
std::string what_is_compared(const std::vector<RunRecord>& group);

/// What compared() gives, with what all runs have in common in a line above, and, with a line of explanation,
/// seed_table(). Groups of comparable() runs are in blocks, each with what_is_compared() above.
void print_comparison(const std::vector<RunRecord>& runs, std::ostream& out, size_t width = 0);

// The keys of the configuration in which runs differ.

/// A key in which the runs differ, with its value in each run.
struct DifferingKey {
  std::string path, short_name;  // short_name: the shortest suffix that no other differing key has
  std::vector<std::string> values;
};
/// Among the keys that all runs have.
std::vector<DifferingKey> differing_keys(const std::vector<RunRecord>& runs);
/// A text that is the same for runs which repeat each other: keys and values without names, seed and data.fold.
std::string repeated_settings(const RunRecord& run);

/// For each path the shortest suffix that is meaningful and not a suffix of another path.
std::vector<std::string> short_names(const std::vector<std::string>& paths);

}  // namespace capstan
