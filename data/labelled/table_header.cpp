// Names that the configuration uses decide first; only then the looks of the first row (begins_with_header), which may
// deceive. tests/data/labelled/test_column_names.cpp.
#include "data/labelled/table_header.hpp"

#include <algorithm>
#include <set>

#include "core/base/error.hpp"
#include "core/strings/strings.hpp"
#include "data/formats/table_columns.hpp"
#include "data/labelled/column_facts.hpp"

namespace capstan {
namespace {

bool is_in(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Has the first row the name of a column that the configuration uses?
bool has_name_of(const LabelledSourceConfig& keys, const TableRows& rows) {
  if (rows.empty()) return false;
  std::vector<std::string> columns = keys.text_columns;
  if (keys.label_column) columns.push_back(*keys.label_column);
  columns.insert(columns.end(), keys.label_columns.begin(), keys.label_columns.end());
  for (const std::string& column : {keys.weight_column, keys.group_column})
    if (!column.empty()) columns.push_back(column);
  const std::vector<std::string> names = column_names(rows.front());
  return std::any_of(columns.begin(), columns.end(),
                     [&](const std::string& column) { return is_column_name(column) && is_in(names, column); });
}

}  // namespace

bool is_column_name(const std::string& column) { return !parse_integer(column); }

std::optional<bool> configured_header(const TableRows& rows, const LabelledSourceConfig& keys) {
  return !keys.header && has_name_of(keys, rows) ? std::optional(true) : keys.header;
}

CommandHeader header_of(const TableRows& rows, const LabelledSourceConfig& keys, const CommandTable& table) {
  if (std::any_of(table.texts.begin(), table.texts.end(), is_column_name)) return {true};
  const bool by_names = (keys.label_column && is_column_name(*keys.label_column)) ||
                        std::any_of(keys.text_columns.begin(), keys.text_columns.end(), is_column_name);
  if (!by_names || keys.text_columns.size() > 1 || rows.empty() || has_name_of(keys, rows))
    return {configured_header(rows, keys)};
  if (begins_with_header(rows)) return {true};
  const std::vector<std::string> first = column_names(rows.front());
  const bool has_class = table.classes != nullptr && std::any_of(first.begin(), first.end(), [&](const auto& field) {
                           return is_in(table.classes->names(), field);
                         });
  if (table.texts.empty() && !has_class)
    throw Error(
        fmt::format("{}: its first row ({}) has no column '{}', which the run reads; name the column of the texts "
                    "with --text-column: by its name, or by a number (1 is the first) if the first row has no names",
                    table.file, join_first(first), join_first(keys.text_columns, "', '")));
  return {false, /*other_columns=*/true};
}

bool begins_with_header(TableRows rows) {
  constexpr double nearly_all = ColumnFacts::nearly_all, most = ColumnFacts::most;
  if (rows.empty()) return false;
  const size_t all = rows.size();
  rows.erase(std::remove(rows.begin() + 1, rows.end(), rows.front()), rows.end());  // of files that were joined
  if (2 * rows.size() < all) return false;
  const std::vector<std::string> names = column_names(rows.front());
  std::vector<ColumnFacts> columns;
  for (size_t c = 0; c < names.size(); ++c) columns.push_back(facts_of_column(rows, c, 1));
  const size_t begin = names.size() > 1 && names.front().empty() ? 1 : 0;  // pandas does not name the index
  size_t end = names.size();
  while (end > begin + 1 && names[end - 1].empty()) --end;  // "v1,v2,,,", as spreadsheets write
  if (are_numbers_of_columns(names))
    return std::any_of(columns.begin(), columns.end(),
                       [](const ColumnFacts& column) { return column.words >= most && column.numbers == 0; });
  const auto names_begin = names.begin() + static_cast<std::ptrdiff_t>(begin),
             names_end = names.begin() + static_cast<std::ptrdiff_t>(end);
  if (!std::all_of(names_begin, names_end, may_name_column)) return false;
  const bool differ = std::set<std::string>(names_begin, names_end).size() == end - begin, rows_below = rows.size() > 2;
  // Without usual names, the first row is a header if a column of numbers has a word there, or if a column of few
  // labels has one there that no other row has, and a column of texts a single word.
  bool usual = false, of_numbers = begin > 0 && rows_below && columns[0].numbers >= nearly_all, of_labels = false,
       of_texts = false;
  for (size_t c = begin; c < end; ++c) {
    if (columns[c].repeats_first) return false;
    of_labels = of_labels || columns[c].looks_like_labels();
    of_texts = of_texts || (columns[c].words >= most && names[c].find(' ') == std::string::npos);
    usual = usual || ColumnName(names[c]).usual;
    of_numbers = of_numbers || (columns[c].numbers >= nearly_all && rows_below);
  }
  return usual || (differ && (of_numbers || (of_labels && of_texts)));
}

}  // namespace capstan
