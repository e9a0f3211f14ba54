// Tables as text show their first rows; as JSON, they have all. tests/cli/inputs/test_data_check.cpp.
#include "run/summaries/data_report.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

#include "core/io/json.hpp"
#include "core/strings/printable.hpp"
#include "run/summaries/text_table.hpp"

namespace capstan {
namespace {

std::string text_of(const DataTable::Cell& cell) {
  if (const auto* const number = std::get_if<double>(&cell)) return fmt::format("{:.1f}", *number);
  if (const auto* const count = std::get_if<int64_t>(&cell)) return fmt::format("{}", *count);
  return std::get<std::string>(cell);
}

/// Prints the first rows of a table. The JSON has all of them.
void print_table(const DataTable& table, std::ostream& out) {
  constexpr size_t shown = 50;  // rows: a table of many classes would push warnings off the screen
  Table text{table.columns};
  for (const auto& cells : table.rows) {
    if (text.size() > shown) break;
    std::vector<std::string> row;
    for (const DataTable::Cell& cell : cells) row.push_back(text_of(cell));
    text.push_back(std::move(row));
  }
  out << table.title << '\n';
  print_text(text, out);
  if (table.rows.size() > shown)
    out << fmt::format("... and {} more rows (--format json has all)\n", table.rows.size() - shown);
}

nlohmann::ordered_json json_of(const DataTable& table) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const auto& cells : table.rows) {
    nlohmann::ordered_json row;
    for (size_t i = 0; i < cells.size(); ++i)
      std::visit([&](const auto& value) { row[table.columns[i]] = value; }, cells[i]);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

void print_text(const DataReport& report, std::ostream& out) {
  for (const DataWarning& warning : report.warnings) out << "warning: " << printable(warning.message) << '\n';
  for (const std::string& error : report.errors) out << "error: " << printable(error) << '\n';
  if (report.warnings.empty() && report.errors.empty()) out << "nothing unusual found\n";
  for (const DataTable& table : report.tables) {
    out << '\n';
    print_table(table, out);
  }
}

void print_json(const DataReport& report, std::ostream& out) {
  nlohmann::ordered_json json;
  for (const DataTable& table : report.tables) json[table.name] = json_of(table);
  json["warnings"] = nlohmann::ordered_json::array();
  for (const DataWarning& warning : report.warnings)
    json["warnings"].push_back({{"check", warning.check}, {"message", warning.message}});
  json["errors"] = report.errors;
  out << json_line(json) << '\n';
}

}  // namespace capstan
