// tests/data/labelled/test_column_names.cpp and test_tables_people_have.cpp.
#include "data/labelled/column_sample.hpp"

#include <algorithm>

#include "core/strings/strings.hpp"
#include "data/formats/records.hpp"
#include "data/formats/table_columns.hpp"
#include "data/labelled/table_header.hpp"

namespace capstan {

ColumnSample::ColumnSample(TableRows rows, std::optional<bool> header) {
  if (rows.empty()) return;
  begins_with_names_ = header.value_or(begins_with_header(rows));
  first_row_ = column_names(rows.front());
  if (!begins_with_names_) {
    const size_t width = common_width(rows);  // reading the table refuses rows of another width
    rows.erase(std::remove_if(rows.begin(), rows.end(), [&](const auto& fields) { return fields.size() != width; }),
               rows.end());
    first_row_ = column_names(rows.front());
  } else {
    rows.erase(std::remove(rows.begin() + 1, rows.end(), rows.front()), rows.end());  // of files that were joined
  }
  const size_t begin = begins_with_names_ ? 1 : 0;
  rows_ = rows.size() - begin;
  for (size_t c = 0; c < first_row_.size(); ++c) {
    names_.emplace_back(begins_with_names_ ? first_row_[c] : "");
    facts_.push_back(facts_of_column(rows, c, begin));
  }
}

bool ColumnSample::begins_with_text() const {
  constexpr size_t longest = 60;
  return std::any_of(first_row_.begin(), first_row_.end(),
                     [](const std::string& field) { return field.size() > longest || is_number(field); });
}

std::optional<size_t> ColumnSample::index_of(const std::string& column) const {
  const auto named = std::find(first_row_.begin(), first_row_.end(), column);
  if (begins_with_names_ && named != first_row_.end()) return static_cast<size_t>(named - first_row_.begin());
  const auto number = parse_integer(column);
  const auto count = static_cast<int64_t>(columns());
  if (!number || *number == 0 || *number > count || *number < -count) return std::nullopt;
  return static_cast<size_t>(*number > 0 ? *number - 1 : count + *number);
}

std::string ColumnSample::name_of(size_t column) const {
  const std::string& name = first_row_[column];
  const bool named = begins_with_names_ && !name.empty() && std::count(first_row_.begin(), first_row_.end(), name) == 1;
  return named ? name : std::to_string(column + 1);
}

std::string ColumnSample::shown(size_t column) const {
  return fmt::format("column {}{}", column + 1, begins_with_names_ ? " (" + first_row_[column] + ")" : "");
}

}  // namespace capstan
