// Rows of labelled texts, for the targets of the formats.
#pragma once

#include "data/formats/table_format.hpp"
#include "tests/fuzz/target.hpp"

namespace capstan::fuzz {

/// The first byte chooses header and columns; the rest is the table.
inline void read_rows_of(std::string_view input, const char* format_name) {
  const TableFormat& format = *format_named(format_name);
  const bool keys = format.fields == TableFormat::Fields::keys;
  const size_t choice = choose(input, 8);
  ColumnChoice columns;
  columns.header = choice % 2 == 1;
  if (choice >= 2) columns.label = columns.header || keys ? "a" : "2";
  if (choice >= 4) columns.text = {columns.header || keys ? "b" : "1", "3"};
  if (choice >= 6) columns.text.emplace_back("-2");
  BadRows bad(OnError::skip);
  const std::vector<LabelledText> rows = read_table(input, "input", format, columns, bad, choice % 2 == 0);
  size_t bytes = 0;
  for (const LabelledText& row : rows) {
    require(row.line > 0, "a row has a line");
    require(row.columns().size() == row.boundaries.size() + 1, "a text has its columns");
    bytes += row.label.size() + row.text.size();
  }
  require(bytes <= 4 * input.size() + 4 * rows.size(), "rows hold no more than the file");
  bad.check();
}

}  // namespace capstan::fuzz
