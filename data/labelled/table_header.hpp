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

/// Whether the first row is a header: as configured, or since it has the name of a column that the configuration uses;
/// unset: as it looks.
std::optional<bool> header_of(const TableRows& rows, const LabelledSourceConfig& keys);

/// A table that a command reads.
struct NewTable {
  const std::string& file;
  const ClassNames* classes;              // of the run; may be null
  const std::vector<std::string>& texts;  // columns that the user has named for the texts
};

/// The same of a command's table. One that has none of the names of the run's columns has a header if it looks so, for
/// its reader to say which name is missing; has none if the first row has a class, and the names are forgotten; and is
/// otherwise an Error.
std::optional<bool> header_of_new(const TableRows& rows, LabelledSourceConfig& keys, const NewTable& table);

}  // namespace capstan
