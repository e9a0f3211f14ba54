// What the columns of a table look like, judged by its first rows: find_columns() sets keys by it, and warnings advise
// on keys. A changed limit can change which columns a new run reads: tests/data/labelled/test_checks.cpp ("columns:
// ...") and test_tables_people_have.cpp have tables as people write them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "data/labelled/column_names.hpp"

namespace capstan {

/// The result of a search for the column of the labels.
struct LabelSearch {
  std::optional<size_t> column;
  std::vector<size_t> candidates = {};  // where `column` is in doubt: the columns that could have the labels
};

/// A summary of each column over the first rows of a table.
class ColumnSample {
 public:
  /// Rows that are read for a sample.
  static constexpr size_t rows_read = 1000;

  ColumnSample() = default;
  /// Rows of fields. `header`: whether the first one names the columns; unset: as it looks.
  ColumnSample(std::vector<std::vector<std::string>> rows, std::optional<bool> header);

  /// Does the first row name the columns, or look like it, other than the rows after it?
  bool begins_with_names() const { return begins_with_names_; }
  const std::vector<std::string>& first_row() const { return first_row_; }
  /// Whether the fields of the first row are too long to name columns.
  bool begins_with_text() const;

  /// Index, from 0, of a column by its number (from 1, or from -1 at the end) or name; none if there is no such column.
  std::optional<size_t> index_of(const std::string& column) const;
  /// How a configuration names a column: by its name in the first row, if that is unique, else by its number from 1.
  std::string name_of(size_t column) const;

  /// Excludes a column from the searches: it is neither label nor text.
  void leave_out(const std::string& column);

  /// The column of the labels. With a header: the one whose name says so, otherwise the only one whose values and name
  /// do not say that it has something else. Without: the first, unless its values cannot be labels; then the only one
  /// whose values look like labels. `single`: a text has one label.
  LabelSearch find_label(bool single) const;
  /// The column of the texts among those with `allowed`: the one whose name says so, otherwise the last, or the longest
  /// of words where that is much longer. None if none is allowed.
  std::optional<size_t> text_or_last(const std::vector<bool>& allowed) const;
  /// Other columns of words that have the same name as `column`.
  std::vector<size_t> namesakes(size_t column) const;
  /// Are all values 0 or 1?
  bool has_flags(size_t column) const { return rows_ > 0 && columns_[column].flags == rows_; }
  /// The column whose name or values look most like labels; none if no column does.
  std::optional<size_t> likely_label() const;
  /// The column with the longest values except `label`; none without another column.
  std::optional<size_t> likely_text(size_t label) const;
  /// Different values of a column in the sample.
  size_t different(size_t column) const { return columns_[column].different; }
  /// Are all values lists of labels, and has any list other than one label?
  bool has_lists(size_t column) const { return columns_[column].lists; }
  /// Mean bytes of a value.
  double mean_bytes(size_t column) const { return columns_[column].mean_bytes; }
  size_t columns() const { return columns_.size(); }
  /// The number of rows, without a first row of names.
  size_t rows() const { return rows_; }

 private:
  struct Column {
    size_t different = 0, flags = 0;  // flags: values that are 0 or 1
    // mean_bytes is of a value; the others are shares of the values. fractions, large: of numbers that are no labels.
    double mean_bytes = 0, numbers = 0, words = 0, filled = 0, fractions = 0, large = 0, dates = 0, splits = 0;
    bool repeats_first = false;  // does the field of the first row occur in another one?
    bool lists = false, left_out = false;
  };
  /// Fills in all that is known of rows `begin` to the end; names are those of the first row.
  void sum_up(const std::vector<std::vector<std::string>>& rows, size_t begin);
  Column column_of(const std::vector<std::vector<std::string>>& rows, size_t column, size_t begin) const;
  bool looks_like_names() const;
  bool looks_like_labels(size_t column) const;
  /// Do the values show that the column has no labels: identifiers, measurements, dates, splits, or hardly any values?
  bool cannot_be_labels(size_t column) const;
  LabelSearch label_of_rows(bool single) const;
  LabelSearch label_by_values(bool single) const;

  std::vector<std::string> first_row_;  // without blanks and quotes around its fields
  std::vector<ColumnName> names_;       // what the fields of first_row_ say, if they are names
  std::vector<Column> columns_;         // without the first row, if that has names
  size_t rows_ = 0;
  bool begins_with_names_ = false;
};

/// Is all of the text one number?
bool is_number(const std::string& text);

}  // namespace capstan
