// Whether the first row of a table names its columns. tests/data/labelled/test_column_names.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/labelled/class_names.hpp"
#include "data/labelled/column_facts.hpp"
#include "data/labelled/labelled_config.hpp"

namespace capstan {

/// Does the first row look like names of columns, other than the rows after it? Copies of it, as in files that were
/// joined, do not count.
bool begins_with_header(TableRows rows);

/// Is a column of a configuration named, not numbered?
bool is_column_name(const std::string& column);

/// Whether the first row of a table of training is a header: as configured, or since it has the name of a column that
/// the configuration uses; unset: as it looks.
std::optional<bool> configured_header(const TableRows& rows, const LabelledSourceConfig& keys);

/// A table that a command reads with a trained run.
struct CommandTable {
  const std::string& file;
  const ClassNames* classes;              // of the run; may be null
  const std::vector<std::string>& texts;  // columns that the user has named for the texts
};

/// What the first row of a command's table is.
struct CommandHeader {
  std::optional<bool> has_names;  // unset: as it looks
  bool other_columns = false;     // the table has none of the names of the run's columns, which do not count for it
};
/// A header, where the user names a column of the texts, or where it has the name of a column of the run. Without such
/// a name: a header, if it looks like one (reading the table then says which name is missing); a row, if it has a class
/// of the run or the user numbers the columns. Throws Error otherwise: nobody knows which column has the texts.
CommandHeader header_of(const TableRows& rows, const LabelledSourceConfig& keys, const CommandTable& table);

}  // namespace capstan
