// Tables as text: what `capstan compare`, `data check` and `eval` print. tests/run/test_run_table.cpp.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace capstan {

/// Rows of cells; the first row is the header.
using Table = std::vector<std::vector<std::string>>;

/// Aligned columns: the first to the left, the others to the right. Cells are made printable. With `width` columns of a
/// terminal, what does not fit is in further tables below, each with the first column, and long cells are cut.
void print_text(Table table, std::ostream& out, size_t width = 0);
/// CSV as in RFC 4180, but with line ends of one byte.
void print_csv(const Table& table, std::ostream& out);

}  // namespace capstan
