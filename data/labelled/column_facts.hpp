// What the values of a column are, by its first rows. A changed limit can change which columns a new run reads:
// tests/data/labelled/test_column_names.cpp.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

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

/// Is all of the text one number?
bool is_number(const std::string& text);

}  // namespace capstan
