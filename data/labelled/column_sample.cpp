// ColumnSample: each column is summed up once (column_of), as shares of its values that are words, numbers, dates and
// the like; searches read these shares and the names. Names count more than values; a doubt is returned as candidates.
// tests/data/labelled/test_checks.cpp and test_tables_people_have.cpp.
#include "data/labelled/column_sample.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "core/strings/strings.hpp"
#include "data/formats/row_labels.hpp"
#include "data/formats/table_columns.hpp"

namespace capstan {
namespace {

// With fewer than rows_needed rows, values say little. A column of labels has at least examples_per_class rows per
// label.
constexpr size_t rows_needed = 20, examples_per_class = 5;
constexpr double nearly_all = 0.95, most = 0.5;  // shares of a column's values, since tables have exceptions

/// Does a value hold a blank or a character beyond ASCII? Texts do, in scripts without blanks too; identifiers do not.
bool has_words(std::string_view value) {
  return std::any_of(value.begin(), value.end(),
                     [](char c) { return c == ' ' || static_cast<unsigned char>(c) > 127; });
}

/// Is a value a date: 2024-01-31, 31.1.2024, 1/31/24 10:30?
bool is_date(std::string_view value) {
  const auto digits = std::count_if(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; });
  const auto parts = std::count_if(value.begin(), value.end(), [](char c) { return c == '-' || c == '/' || c == '.'; });
  return digits >= 4 && parts >= 2 && value.find_first_not_of("0123456789-/.: TZ+") == std::string_view::npos;
}

bool names_split(const std::string& value) {
  static const std::set<std::string> splits{"train", "training", "valid", "validation",
                                            "val",   "dev",      "test",  "testing"};
  return splits.count(value) > 0;
}

}  // namespace

bool is_number(const std::string& text) {
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return !text.empty() && end == text.c_str() + text.size();
}

ColumnSample::ColumnSample(std::vector<std::vector<std::string>> rows, std::optional<bool> header) {
  if (rows.empty()) return;
  sum_up(rows, 1);
  begins_with_names_ = header.value_or(looks_like_names());
  if (begins_with_names_) return;
  const size_t width = common_width(rows);  // reading the table refuses rows of another width
  rows.erase(std::remove_if(rows.begin(), rows.end(), [&](const auto& fields) { return fields.size() != width; }),
             rows.end());
  sum_up(rows, 0);
}

void ColumnSample::sum_up(const std::vector<std::vector<std::string>>& rows, size_t begin) {
  first_row_ = column_names(rows.front());
  names_.clear();
  for (const std::string& name : first_row_) names_.emplace_back(name);
  rows_ = rows.size() - begin;
  columns_.clear();
  for (size_t c = 0; c < first_row_.size(); ++c) columns_.push_back(column_of(rows, c, begin));
}

ColumnSample::Column ColumnSample::column_of(const std::vector<std::vector<std::string>>& rows, size_t column,
                                             size_t begin) const {
  constexpr double large = 1e6;
  const double row_share = 1 / static_cast<double>(std::max<size_t>(rows.size() - begin, 1));
  Column facts;
  std::set<std::string> different;
  bool lists = true, several = false;
  for (size_t r = begin; r < rows.size(); ++r) {
    if (column >= rows[r].size()) continue;
    const std::string value(label_text(rows[r][column]));
    different.insert(value);
    const auto listed = lists ? listed_labels(value) : std::nullopt;
    lists = listed.has_value();
    several = several || (listed && listed->size() != 1);
    facts.mean_bytes += row_share * static_cast<double>(rows[r][column].size());
    facts.words += has_words(value) ? row_share : 0;
    facts.filled += value.empty() ? 0 : row_share;
    facts.dates += is_date(value) ? row_share : 0;
    facts.splits += names_split(value) ? row_share : 0;
    if (!is_number(value)) continue;
    const double number = std::strtod(value.c_str(), nullptr);
    facts.numbers += row_share;
    facts.fractions += std::floor(number) != number ? row_share : 0;
    facts.large += std::abs(number) >= large ? row_share : 0;
    facts.flags += number == 0 || number == 1 ? 1 : 0;
  }
  facts.different = different.size();
  facts.repeats_first = different.count(first_row_[column]) > 0;
  facts.lists = lists && several;
  return facts;
}

bool ColumnSample::looks_like_names() const {
  const size_t begin = first_row_.size() > 1 && first_row_.front().empty() ? 1 : 0;  // pandas does not name the index
  size_t end = first_row_.size();
  while (end > begin + 1 && first_row_[end - 1].empty()) --end;  // "v1,v2,,,", as spreadsheets write
  if (are_numbers_of_columns(first_row_))
    return std::any_of(columns_.begin(), columns_.end(),
                       [](const Column& column) { return column.words >= most && column.numbers == 0; });
  const auto names_begin = first_row_.begin() + static_cast<std::ptrdiff_t>(begin),
             names_end = first_row_.begin() + static_cast<std::ptrdiff_t>(end);
  if (!std::all_of(names_begin, names_end, may_name_column)) return false;
  const bool differ = std::set<std::string>(names_begin, names_end).size() == end - begin;
  // Without usual names, the first row is a header if a column of numbers has a word there, or if a column of few
  // labels has one there that no other row has, and a column of texts a single word.
  bool usual = false, of_numbers = begin > 0 && rows_ > 1 && columns_[0].numbers >= nearly_all, of_labels = false,
       of_texts = false;
  for (size_t c = begin; c < end; ++c) {
    if (columns_[c].repeats_first) return false;
    of_labels = of_labels || looks_like_labels(c);
    of_texts = of_texts || (columns_[c].words >= most && first_row_[c].find(' ') == std::string::npos);
    usual = usual || names_[c].usual;
    of_numbers = of_numbers || (columns_[c].numbers >= nearly_all && rows_ > 1);
  }
  return usual || (differ && (of_numbers || (of_labels && of_texts)));
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
  const auto count = static_cast<int64_t>(columns_.size());
  if (!number || *number == 0 || *number > count || *number < -count) return std::nullopt;
  return static_cast<size_t>(*number > 0 ? *number - 1 : count + *number);
}

std::string ColumnSample::name_of(size_t column) const {
  const std::string& name = first_row_[column];
  const bool named = begins_with_names_ && !name.empty() && std::count(first_row_.begin(), first_row_.end(), name) == 1;
  return named ? first_row_[column] : std::to_string(column + 1);
}

std::vector<size_t> ColumnSample::namesakes(size_t column) const {
  std::vector<size_t> found;
  for (size_t c = 0; c < columns_.size() && begins_with_names_; ++c)
    if (c != column && first_row_[c] == first_row_[column] && columns_[c].words >= most) found.push_back(c);
  return found;
}

bool ColumnSample::looks_like_labels(size_t column) const {
  const size_t different = columns_[column].different;
  return rows_ >= rows_needed && different >= 2 && different * examples_per_class <= rows_ && !cannot_be_labels(column);
}

bool ColumnSample::cannot_be_labels(size_t column) const {
  constexpr double nearly_different = 0.9;
  constexpr size_t many = 20;
  const Column& facts = columns_[column];
  if (facts.left_out) return true;
  if (rows_ < rows_needed) return false;
  return static_cast<double>(facts.different) >= nearly_different * static_cast<double>(rows_) || facts.filled < most ||
         (facts.fractions > 0 && facts.different > many) || facts.large >= nearly_all || facts.dates >= nearly_all ||
         facts.splits >= nearly_all;
}

void ColumnSample::leave_out(const std::string& column) {
  const auto at = index_of(column);
  if (!at) return;
  columns_[*at].left_out = true;
  names_[*at] = ColumnName("");
}

LabelSearch ColumnSample::find_label(bool single) const {
  if (columns_.empty()) return {};
  if (!begins_with_names_) return label_of_rows(single);
  for (int surely = 4; surely > 0; --surely) {
    std::vector<size_t> named, likely;
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (names_[c].label != surely || (surely < 4 && single && cannot_be_labels(c))) continue;
      named.push_back(c);
      if (looks_like_labels(c)) likely.push_back(c);
    }
    if (single && likely.size() == 1) return {likely.front()};
    if (named.size() == 1) return {named.front()};
    if (named.size() > 1) return {std::nullopt, named};
  }
  return label_by_values(single);
}

LabelSearch ColumnSample::label_by_values(bool single) const {
  std::vector<bool> other(columns_.size());
  for (size_t c = 0; c < columns_.size(); ++c)
    other[c] = names_[c].other || columns_[c].left_out || (single && cannot_be_labels(c));
  const auto text = text_or_last(std::vector<bool>(columns_.size(), true));
  std::vector<size_t> left, likely;
  for (size_t c = 0; c < columns_.size(); ++c) {
    if (other[c] || names_[c].text > 0) continue;
    if (single && looks_like_labels(c)) likely.push_back(c);
    if (c != text) left.push_back(c);
  }
  if (likely.size() == 1) return {likely.front()};
  if (likely.size() > 1) return {std::nullopt, likely};
  if (left.size() == 1) return {left.front()};
  return {std::nullopt, left};
}

LabelSearch ColumnSample::label_of_rows(bool single) const {
  if (!single || !cannot_be_labels(0)) return {0};
  std::vector<size_t> likely;
  for (size_t c = 0; c < columns_.size(); ++c)
    if (looks_like_labels(c)) likely.push_back(c);
  if (likely.size() == 1) return {likely.front()};
  if (likely.empty() && columns_[0].different == rows_) return {0};  // reading the labels refuses identifiers
  return {std::nullopt, likely};
}

std::optional<size_t> ColumnSample::text_or_last(const std::vector<bool>& allowed) const {
  constexpr double much_longer = 4;
  std::optional<size_t> last, longest;
  for (int surely = 2; surely > 0 && begins_with_names_; --surely) {
    std::vector<size_t> named;
    for (size_t c = 0; c < columns_.size(); ++c)
      if (allowed[c] && names_[c].text == surely) named.push_back(c);
    if (named.size() == 1) return named.front();
    if (named.size() > 1) break;
  }
  for (size_t c = 0; c < columns_.size(); ++c) {
    if (!allowed[c] || columns_[c].left_out) continue;
    last = c;
    if (columns_[c].words < most) continue;
    if (!longest || columns_[c].mean_bytes > columns_[*longest].mean_bytes) longest = c;
  }
  if (!longest || columns_[*longest].mean_bytes <= much_longer * columns_[*last].mean_bytes) return last;
  return longest;
}

std::optional<size_t> ColumnSample::likely_label() const {
  const auto found = find_label(/*single=*/true).column;
  if (found && (begins_with_names_ || looks_like_labels(*found))) return found;
  std::optional<size_t> best;
  for (size_t c = 0; c < columns_.size(); ++c)
    if (looks_like_labels(c) && (!best || columns_[c].different < columns_[*best].different)) best = c;
  return best;
}

std::optional<size_t> ColumnSample::likely_text(size_t label) const {
  std::optional<size_t> best;
  for (size_t c = 0; c < columns_.size(); ++c)
    if (c != label && !columns_[c].left_out && (!best || columns_[c].mean_bytes > columns_[*best].mean_bytes)) best = c;
  return best;
}

}  // namespace capstan
