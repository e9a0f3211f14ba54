#include "run/report/tables.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "run/report/chart.hpp"
#include "run/report/html.hpp"

namespace capstan {
namespace {

/// Whether no cell below the header begins as a word does.
bool is_numeric(const Table& table, size_t column) {
  return std::none_of(table.begin() + 1, table.end(), [column](const auto& row) {
    const auto first = static_cast<unsigned char>(row[column].empty() ? '-' : row[column].front());
    return std::isalpha(first) != 0 || first >= 0x80;
  });
}

}  // namespace

std::string table_html(const Table& table, const std::string& name, bool coloured) {
  std::string out =
      fmt::format("<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table>", escaped(name));
  std::vector<const char*> kinds;
  for (size_t i = 0; i < table.front().size(); ++i)
    kinds.push_back(i > 0 && is_numeric(table, i) ? " class=\"number\"" : "");
  for (size_t row = 0; row < table.size(); ++row) {
    out += row == 0 ? "<thead><tr>" : "<tr>";
    for (size_t i = 0; i < table[row].size(); ++i) {
      const std::string& cell = table[row][i];
      const char* const tag = row == 0 || i == 0 ? "th" : "td";
      const bool wraps = row > 0 && kinds[i][0] == '\0';  // in an element, whose width can be limited
      out +=
          fmt::format("<{0}{1}{2}>{3}{4}{5}{6}</{0}>", tag, kinds[i],
                      row == 0 ? " scope=\"col\""
                      : i == 0 ? " scope=\"row\""
                               : "",
                      wraps ? "<div>" : "", coloured && row > 0 && i == 0 ? line_sample(static_cast<int>(row) - 1) : "",
                      escaped_short(cell, 400), wraps ? "</div>" : "");
    }
    out += row == 0 ? "</tr></thead><tbody>" : "</tr>";
  }
  return out + "</tbody></table></div>\n";
}

std::string figures_html(const Table& figures) {
  std::string out = "<dl class=\"figures\">";
  for (const auto& figure : figures)
    out += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", escaped(figure[0]), escaped(figure[1]));
  return out + "</dl>\n";
}

}  // namespace capstan
