// Which columns of a table hold text and labels: found by names and values where the configuration does not say. Before
// a run reads its data, and for the tables that commands read (--input).
// tests/data/labelled/test_tables_people_have.cpp and test_checks.cpp hold what is found.
#pragma once

#include <string>
#include <vector>

#include "data/labelled/class_names.hpp"
#include "data/labelled/labelled_config.hpp"

namespace capstan {

/// Sets header, label_column and text_columns where they are unset, and multi_label where labels are lists or columns
/// of which not exactly one is 1, by the first rows of the first training table. Returns what was found, in one line
/// for the log; empty when nothing was. A file that cannot be read gives nothing: its reader reports it. Throws
/// ConfigError where several columns could have the labels that a model needs (`classifies`), or the texts.
std::string find_columns(LabelledSourceConfig& config, bool classifies = true);

/// The columns to read of a table that is not the run's training data.
struct FoundColumns {
  ColumnChoice choice;
  std::string said;  // a line for the log: which columns are read and which left out; empty where there is one column
};

/// The columns of TSV or CSV, by the names that the run's `config` has or else by their values: a column of `classes`
/// holds labels and is no text. A first row without the run's names is a header if it looks like one, is none if it has
/// the name of a class, and is otherwise an Error. `texts`: columns that the user has named for the texts, in place of
/// the run's. `labels`: the table must have labels. Throws Error, too, where the columns named for the texts hold
/// labels.
FoundColumns columns_of_table(LabelledSourceConfig config, const std::vector<std::string>& texts,
                              std::string_view content, const std::string& file, const TableFormat& format,
                              const ClassNames* classes, bool labels);

}  // namespace capstan
