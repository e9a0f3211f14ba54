// Escapes text for HTML and writes tables. All text from a run must pass through escaped():
// tests/run/test_report_parts.cpp.
#include "run/report/html.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/core.h>

#include "core/strings/utf8.hpp"

namespace capstan {
namespace {

constexpr int colours = 6, dash_patterns = 4;  // of report.css

const char* entity(uint32_t code_point) {
  switch (code_point) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return nullptr;
  }
}

/// Characters that HTML does not allow.
bool is_control(uint32_t code_point) {
  return (code_point < 0x20 && code_point != '\n' && code_point != '\t') || (code_point >= 0x7F && code_point < 0xA0);
}

}  // namespace

std::string escaped_short(std::string_view text, size_t characters) {
  std::string out;
  for (size_t count = 0; !text.empty(); ++count) {
    if (count == characters) return out + "\xE2\x80\xA6";
    const Utf8Character next = first_character(text);
    if (next.code_point == '\r' && next.state == Utf8Character::State::valid) {
      out += "\xE2\x90\x8D";  // the symbol for a carriage return, U+240D
      text.remove_prefix(1);
      continue;
    }
    const bool shown = next.state == Utf8Character::State::valid && !is_control(next.code_point);
    if (!shown)
      out += "\xEF\xBF\xBD";
    else if (const char* const name = entity(next.code_point); name != nullptr)
      out += name;
    else
      out += text.substr(0, next.bytes);
    text.remove_prefix(next.state == Utf8Character::State::cut_off ? text.size() : next.bytes);
  }
  return out;
}

std::string escaped(std::string_view text) { return escaped_short(text, text.size()); }

namespace {

/// Whether no cell below the header begins with a letter or a character beyond ASCII.
bool is_numeric(const Table& table, size_t column) {
  return std::none_of(table.begin() + 1, table.end(), [column](const auto& row) {
    const auto first = static_cast<unsigned char>(row[column].empty() ? '-' : row[column].front());
    return std::isalpha(first) != 0 || first >= 0x80;
  });
}

}  // namespace

std::string colour_class(int colour) {
  return fmt::format("c{} d{}", colour % colours, colour / colours % dash_patterns);
}

std::string line_sample(int colour, LineStyle style) {
  const bool marked = style == LineStyle::marked;
  return fmt::format(
      "<svg class=\"sample\" viewBox=\"0 0 24 10\" aria-hidden=\"true\"><g class=\"{} {}\"><path d=\"M1 5L23 5\"/>{}"
      "</g></svg>",
      colour_class(colour), marked ? "marked" : "thin", marked ? "<circle cx=\"12\" cy=\"5\" r=\"2.6\"/>" : "");
}

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
      const bool wraps = row > 0 && kinds[i][0] == '\0';  // text is in a <div>, whose width the style sheet can limit
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
