// What the names of columns say of their content, by lists of English words. For ColumnSample, and for --input of
// commands. A word that is added can change which column a new run reads: tests/data/labelled/test_checks.cpp
// ("columns: ...").
#pragma once

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

}  // namespace capstan
