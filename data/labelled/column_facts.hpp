// What the name of a column says of its content, by lists of English words, and what its values are, by its first rows.
// A word that is added, or a changed limit, can change which columns a new run reads:
// tests/data/labelled/test_column_names.cpp.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace capstan {

/// What the name of a column says of its content.
struct ColumnName {
  explicit ColumnName(const std::string& name);

  /// How surely the column has the labels; 0: the name does not say so. 4: "label"; 3: "sentiment"; 2: it has such a
  /// word ("airline_sentiment", "is_spam"); 1: beside a word for an identifier ("category_id").
  int label = 0;
  /// How surely the column has the texts. 2: "review"; 1: it has such a word ("comment_text"); 0: the name does not
  /// say.
  int text = 0;
  /// Whether the name is that of a whole text, or of a part of one: "body", "title", "premise".
  bool part = false;
  /// Whether the name says that the column has neither: an identifier, a date, a split, a source.
  bool other = false;
  /// Whether the name is one that tables usually have, so that a first row with it is a header, not an example.
  bool usual = false;
};

/// Could a field be the name of a column: "Class Index", "review_text", "Toxic?", also with letters of other scripts?
/// Numbers and sentences are not.
bool may_name_column(const std::string& field);

/// A name without the number or letter that tells it from others: "sentence1" -> "sentence", "text_a" -> "text_".
std::string without_number(const std::string& name);

/// Are the fields 0, 1, 2, ..., as pandas names the columns of a table without names, perhaps after an empty one?
bool are_numbers_of_columns(const std::vector<std::string>& fields);

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
