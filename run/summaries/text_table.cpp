// Columns are as wide as their widest cell. tests/run/test_run_table.cpp.
#include "run/summaries/text_table.hpp"

#include <algorithm>

#include "core/strings/printable.hpp"

namespace capstan {
namespace {

std::string padding(const std::string& text, size_t width) {
  return std::string(width - std::min(width, display_columns(text)), ' ');
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

}  // namespace

void print_text(Table table, std::ostream& out, size_t width) {
  const size_t widest = width == 0 ? std::string::npos : std::max<size_t>(width / 2, 4) - 2;
  std::vector<size_t> widths(table.front().size());
  for (std::vector<std::string>& row : table)
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = printable_line(row[i]);
      if (display_columns(row[i]) > widest) row[i] = std::string(first_columns(row[i], widest - 1)) + "\u2026";
      widths[i] = std::max(widths[i], display_columns(row[i]));
    }
  size_t begin = 1;
  do {
    size_t end = begin, used = widths[0];
    while (end < widths.size() && (end == begin || width == 0 || used + 2 + widths[end] <= width))
      used += 2 + widths[end++];
    if (begin > 1) out << '\n';
    for (const std::vector<std::string>& row : table) {
      out << row[0] << padding(row[0], widths[0]);
      for (size_t i = begin; i < end; ++i) out << "  " << padding(row[i], widths[i]) << row[i];
      out << '\n';
    }
    begin = end;
  } while (begin < widths.size());
}

void print_csv(const Table& table, std::ostream& out) {
  for (const std::vector<std::string>& row : table)
    for (size_t i = 0; i < row.size(); ++i) out << csv_field(row[i]) << (i + 1 < row.size() ? ',' : '\n');
}

}  // namespace capstan
