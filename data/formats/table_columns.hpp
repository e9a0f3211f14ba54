// The columns of a table of fields in rows (TSV, CSV): which of them are read, and how a row becomes a LabelledText.
// Errors name file and line; tests/data/labelled/test_labelled_source.cpp holds their texts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/formats/table_format.hpp"

namespace capstan {

/// The names of the columns as a first row has them: without blanks and quotes around them.
std::vector<std::string> column_names(const std::vector<std::string>& first_row);

/// Which column of a row is its label and which are its text. All rows have equally many fields: as many as the header
/// or, without one, as most of the first rows.
class TableColumns {
 public:
  TableColumns(const TableInput& input, const char* format, char delimiter)
      : input_(input), format_(format), delimiter_(delimiter) {}

  /// Finds the columns by the header; throws Error for a name that it does not have, or has twice.
  void set_header(const std::vector<std::string>& first_row);
  /// Finds them by their numbers; throws ConfigError for a name.
  void set_rows(const std::vector<std::vector<std::string>>& first_rows);

  /// The label of a row that cannot be used; empty where that is not known.
  std::string label_of(const std::vector<std::string>& fields) const;
  /// Throws Error for a row that cannot be used.
  LabelledText row(const std::vector<std::string>& fields, int64_t line) const;

 private:
  /// Finds the columns that the ColumnChoice names.
  void choose();
  /// Throws Error where a column is chosen as label and as text.
  void refuse_label_as_text() const;
  /// The number of a column by its name or number: from 1, or negative from the end. `keys`: those that choose it, for
  /// errors.
  int64_t number(const std::string& column, const std::string& keys) const;
  /// Index, from 0, of the column of this number; width_ or more if there is none.
  size_t place(int64_t column) const;
  void check_width(const std::vector<std::string>& fields, const std::string& where) const;
  [[noreturn]] void throw_too_few(const std::string& where) const;
  void add_labels(LabelledText& row, const std::vector<std::string>& fields, const std::string& where) const;

  const TableInput& input_;
  const char* format_;
  char delimiter_;
  std::vector<std::string> header_ = {};
  size_t width_ = 0;
  int64_t label_ = 1, weight_ = 0, group_ = 0;  // numbers of columns; of the last two, 0: there is none
  std::vector<int64_t> text_ = {}, label_columns_ = {};
};

}  // namespace capstan
