// The columns of a table, with their names and what their values are, judged by its first rows: the step between
// finding the header (table_header.hpp) and the columns of label and text (column_roles.hpp). A changed limit can
// change which columns a new run reads: tests/data/labelled/test_column_names.cpp and test_tables_people_have.cpp.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "data/labelled/column_facts.hpp"

namespace capstan {

/// A summary of each column over the first rows of a table.
class ColumnSample {
 public:
  /// Rows that are read for a sample.
  static constexpr size_t rows_read = 1000;

  ColumnSample() = default;
  /// `header`: whether the first row names the columns; unset: as it looks.
  ColumnSample(TableRows rows, std::optional<bool> header);

  /// Does the first row name the columns?
  bool begins_with_names() const { return begins_with_names_; }
  /// Whether the fields of the first row are too long to name columns, or numbers.
  bool begins_with_text() const;
  const std::vector<std::string>& first_row() const { return first_row_; }

  size_t columns() const { return facts_.size(); }
  /// The number of rows, without a first row of names.
  size_t rows() const { return rows_; }
  const ColumnFacts& facts(size_t column) const { return facts_[column]; }
  /// What the name of a column says; nothing without a header.
  const ColumnName& name(size_t column) const { return names_[column]; }

  /// Index, from 0, of a column by its number (from 1, or from -1 at the end) or name; none if there is no such column.
  std::optional<size_t> index_of(const std::string& column) const;
  /// How a configuration names a column: by its name in the first row, if that is unique, else by its number from 1.
  std::string name_of(size_t column) const;
  /// For a message: "column 2 (review)".
  std::string shown(size_t column) const;

 private:
  std::vector<std::string> first_row_;  // without blanks and quotes around its fields
  std::vector<ColumnName> names_;
  std::vector<ColumnFacts> facts_;  // without the first row, if that has names
  size_t rows_ = 0;
  bool begins_with_names_ = false;
};

}  // namespace capstan
