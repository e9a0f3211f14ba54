// The columns of a table with their kinds, judged by its first rows: the step between finding the header
// (table_header.hpp) and the columns of label and text (column_roles.hpp). A changed limit can change which columns a
// new run reads: tests/data/labelled/test_column_names.cpp and test_tables_people_have.cpp.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "data/labelled/column_names.hpp"

namespace capstan {

/// What the values of a column are. All but counts and mean_bytes are shares of the values.
struct ColumnFacts {
  static constexpr double nearly_all = 0.95, most = 0.5;  // shares, since tables have exceptions

  size_t rows = 0, different = 0, flags = 0;  // flags: values that are 0 or 1
  double mean_bytes = 0, filled = 0, numbers = 0, dates = 0, splits = 0;
  double words = 0, prose = 0;      // of values with a blank or a character beyond ASCII; of three words or more
  double fractions = 0, large = 0;  // of numbers that are no labels
  bool shares = false;              // are all values numbers from 0 to 1, and not only 0 and 1?
  bool repeats_first = false;       // is the field of the first row one of the values?
  bool lists = false;               // are all values lists of labels, and has any list other than one label?

  /// Have at least five rows a value each, of at least 20?
  bool looks_like_labels() const;
  /// Do the values show that the column has no labels: identifiers, measurements, dates, splits, or hardly any values?
  bool cannot_be_labels() const;
  /// Are most values texts of several words, which mostly differ?
  bool looks_like_texts() const;
  /// In a few words: "numbers", "2 different values".
  std::string kind() const;
};

/// Rows of fields, the header included.
using TableRows = std::vector<std::vector<std::string>>;

/// The facts of the values of a column in the rows from `begin` on.
ColumnFacts facts_of_column(const TableRows& rows, size_t column, size_t begin);

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

/// Is all of the text one number?
bool is_number(const std::string& text);

}  // namespace capstan
