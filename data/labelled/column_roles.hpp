// Which of a table's columns has the labels and which have the texts, by their names and values: names count more, and
// a doubt is returned, not settled. The last step of understanding a table (table_reading.hpp).
// tests/data/labelled/test_column_names.cpp.
#pragma once

#include "data/labelled/class_names.hpp"
#include "data/labelled/column_sample.hpp"

namespace capstan {

/// The result of a search for the column of the labels.
struct LabelSearch {
  std::optional<size_t> column;
  std::vector<size_t> candidates = {};  // where `column` is in doubt: the columns that could have the labels
};

/// The column of the labels. With a header: the one whose name says so, otherwise the only one whose values and name do
/// not say that it has something else. Without: the first, unless its values cannot be labels; then the only one whose
/// values look like labels. `single`: a text has one label. `left_out`: columns that have none.
LabelSearch find_label(const ColumnSample& sample, bool single, const std::vector<size_t>& left_out = {});

/// The columns of which nearly all values are classes, by their names or, where none has these, by their numbers.
/// `separator`: between the classes of a text that may have several; else empty.
std::vector<size_t> columns_of_classes(const TableRows& rows, const ColumnSample& sample, const ClassNames& classes,
                                       const std::string& separator);

/// The result of a search for the columns of the texts.
struct TextSearch {
  std::optional<size_t> main;        // none if none is allowed
  std::vector<size_t> columns = {};  // in the order of the table
  bool belong_together = true;       // otherwise it is in doubt whether all of them are read, or the main one
};

/// The columns of the texts among those with `allowed`. The main one is that whose name says so ("text" of `keys`), to
/// which parts of it are added; otherwise the last, or the longest of words where that is much longer (of `keys`, the
/// longest), with all others that look like texts.
TextSearch find_texts(const ColumnSample& sample, const std::vector<bool>& allowed, bool keys);

/// Throws the question which of several columns are the texts, with what to set: of a `command`, Error with its option,
/// otherwise ConfigError with the key.
[[noreturn]] void ask_for_texts(const ColumnSample& sample, const TextSearch& found, const std::string& file,
                                bool command);

/// Throws ConfigError for a table without a header such as "1,Good, and cheap", whose texts hold delimiters and lack
/// their quotes: the last column would be the end of a text.
void refuse_divided_texts(const ColumnSample& sample, const TableRows& rows, const std::string& file);

}  // namespace capstan
