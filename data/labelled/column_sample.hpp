// What the columns of a table look like, judged by its first rows: for advice on keys.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace capstan {

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

  /// Index, from 0, of a column by its number (from 1 or from the end) or name.
  std::optional<size_t> index_of(const std::string& column) const;
  /// How a configuration names a column: by its name in the first row, if that is unique, else by its number from 1.
  std::string name_of(size_t column) const;

  /// The column of the labels, found by its name or, if the values of the first column cannot be labels, by its values;
  /// the first column if these leave a doubt. `by_values`: labels are single ones.
  size_t label_or_first(bool by_values) const;
  /// The column of the texts among those with `allowed`: the one whose name says so, otherwise the last, or the longest
  /// of words where that is much longer. None if none is allowed.
  std::optional<size_t> text_or_last(const std::vector<bool>& allowed) const;
  /// The column whose name or values look most like labels; none if no column does.
  std::optional<size_t> likely_label() const;
  /// The column with the longest values except `label`; none without another column.
  std::optional<size_t> likely_text(size_t label) const;
  /// Different values of a column in the sample.
  size_t different(size_t column) const { return columns_[column].different; }
  /// Are all values lists, and not all of one label?
  bool has_lists(size_t column) const { return columns_[column].lists; }
  /// Mean bytes of a value.
  double mean_bytes(size_t column) const { return columns_[column].mean_bytes; }
  size_t columns() const { return columns_.size(); }
  /// The number of rows, without a first row of names.
  size_t rows() const { return rows_; }

 private:
  struct Column {
    size_t different = 0;
    double mean_bytes = 0, numbers = 0, words = 0;  // `numbers` and `words` are shares of values
    bool repeats_first = false;                     // does the field of the first row occur in another one?
    bool lists = false;
  };
  bool looks_like_names() const;
  bool looks_like_labels(size_t column) const;
  /// Columns with such a name; none without a header.
  std::vector<size_t> named(const std::set<std::string>& names) const;

  std::vector<std::string> first_row_;
  std::vector<Column> columns_;  // without the first row, if that has names
  size_t rows_ = 0;
  bool begins_with_names_ = false;
};

/// Is all of the text one number?
bool is_number(const std::string& text);

}  // namespace capstan
