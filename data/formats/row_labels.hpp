// Makes the labels of a row from a field, a list, or columns of 0 and 1, by the same rules in every format.
// tests/data/labelled/test_multi_label.cpp compares the formats, tests/data/labelled/test_tables_people_have.cpp labels
// as people write them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/formats/table_format.hpp"

namespace capstan {

/// A label, or a name in a header, as its field has it: without blanks around it, and without double quotes around it.
std::string_view label_text(std::string_view field);

/// A list of strings or integers as JSON or Python write it; none for any other text.
std::optional<std::vector<std::string>> listed_labels(std::string_view text);

/// "a, b" -> {"a", "b"}: without the blanks around a label; empty text has none. A list in brackets, as JSON or Python
/// write one, needs no separator.
std::vector<std::string> split_labels(std::string_view text, std::string_view separator);

/// Has a row the label of this column (data.label_columns)? Its field says 1 or true, 0 or false; throws Error naming
/// `place` and the column for anything else.
bool flag_of(std::string_view field, const std::string& column, const std::string& place);

/// How much a row counts: its field of the column of weights. Throws Error naming `place` and the column unless it is a
/// number from 0.
double weight_of(const std::string& field, const std::string& column, const std::string& place);

/// Sets the label, the labels or the target of a row from its field; a list of one label is that label. Throws Error
/// naming `place` for an empty one.
void set_label(LabelledText& row, const std::string& field, const ColumnChoice& choice, const std::string& place);

/// Sets the label, or the labels, of a row that were read from a list or from several columns. Throws Error naming
/// `place` for an empty one, and for other than one label where choice.label_separator is empty.
void set_labels(LabelledText& row, std::vector<std::string> labels, const ColumnChoice& choice,
                const std::string& place);

}  // namespace capstan
