#include "run/yaml/config_table.hpp"

#include <string_view>

namespace capstan {
namespace {

/// Escapes what Markdown would interpret: a vertical bar ends a cell, <...> is HTML, * is emphasis.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("|<*").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string code(const std::string& text) { return text.empty() ? "" : "`" + text + "`"; }

}  // namespace

std::string markdown_table(const std::vector<TableRow>& rows) {
  std::string out = "| Key | Type | Default | Limits | Meaning |\n|---|---|---|---|---|\n";
  for (const auto& row : rows) {
    const std::string default_value =
        row.default_value == "must be given" ? row.default_value : code(row.default_value);
    for (const auto& text : {code(row.path), row.type, default_value, row.limits, row.help})
      out += "| " + cell(text) + " ";
    out += "|\n";
  }
  return out;
}

}  // namespace capstan
