// Runs side by side: the tables of `capstan compare`, `capstan sweep` and `capstan report`.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "apps/runs/run_record.hpp"

namespace capstan {

/// Rows of cells; the first row is the header.
using Table = std::vector<std::vector<std::string>>;

/// Sensible digits for people; all digits and whole paths of keys for programs.
enum class TableStyle { people, programs };

/// A row per run: the keys in which they differ, losses, accuracy, time, memory.
Table run_table(const std::vector<RunRecord>& runs, TableStyle style);

/// Runs that differ in their seed alone, as one row: mean ± standard deviation (of the sample, n - 1) of the best
/// validation loss (of the last training loss where a run has no validation) and of its accuracy. In the order of the
/// first run of each row. Without rows when no two runs differ in their seed alone.
Table seed_table(const std::vector<RunRecord>& runs);

/// One learning curve, a row per step that has a line: what training told and what validation told.
Table curve_table(const RunRecord& run, TableStyle style);

/// Columns aligned; the first to the left, the others to the right.
void print_text(const Table& table, std::ostream& out);
/// RFC 4180.
void print_csv(const Table& table, std::ostream& out);

/// run_table and, under a line of explanation, seed_table.
void print_comparison(const std::vector<RunRecord>& runs, std::ostream& out);

}  // namespace capstan
