// A table with predictions as new columns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/files/table_reader.hpp"

namespace capstan {

struct AddedField {
  std::string name, value;
  bool number = false;
};

/// The content of a file as read_table() reads it, with its bytes, delimiter and line ends, and these fields after
/// those of each row, which are first filled up to those of the longest. Throws Error where it has such a column.
/// `format`: TSV, CSV or JSONL.
std::string with_fields(std::string_view content, const std::string& file, TableFormat format, bool header,
                        const std::vector<std::vector<AddedField>>& added);

/// Tabs and line ends become spaces.
std::string tsv_field(std::string text);

}  // namespace capstan
