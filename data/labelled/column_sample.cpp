#include "data/labelled/column_sample.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>

#include "core/strings/integer.hpp"
#include "data/files/table_reader.hpp"

namespace capstan {
namespace {

const std::set<std::string> label_names = {"label", "labels", "class",    "category", "sentiment",
                                           "topic", "target", "intent",   "tag",      "rating",
                                           "stars", "score",  "polarity", "emotion"};
const std::set<std::string> text_names = {"text",    "review", "sentence", "body",        "content", "message",
                                          "comment", "tweet",  "question", "description", "document"};
const std::set<std::string> other_names = {"title",  "answer", "id",      "idx",        "index",   "name",   "date",
                                           "source", "query",  "premise", "hypothesis", "subject", "summary"};
// Fewer rows say little. A column of labels has at least this many rows per label.
constexpr size_t rows_needed = 20, examples_per_class = 5;

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// Is it text of words, or in a script without blanks, and no identifier?
bool has_words(const std::string& value) {
  return std::any_of(value.begin(), value.end(),
                     [](char c) { return c == ' ' || static_cast<unsigned char>(c) > 127; });
}

/// "label", "review_text", "Class Index", also with letters of other scripts.
bool may_name_column(const std::string& field) {
  constexpr size_t longest = 40;
  if (field.empty() || field.size() > longest || std::isdigit(static_cast<unsigned char>(field[0])) != 0) return false;
  const auto fits = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return std::isalnum(byte) != 0 || byte > 127 || c == '_' || c == '-' || c == '.' || c == ' ';
  };
  return std::all_of(field.begin(), field.end(), fits) && std::count(field.begin(), field.end(), ' ') < 3;
}

}  // namespace

bool is_number(const std::string& text) {
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return !text.empty() && end == text.c_str() + text.size();
}

ColumnSample::ColumnSample(std::vector<std::vector<std::string>> rows, std::optional<bool> header) {
  if (rows.empty()) return;
  first_row_ = rows.front();
  columns_.resize(first_row_.size());
  const auto sum_up = [&](size_t begin) {
    rows_ = rows.size() - begin;
    for (size_t c = 0; c < columns_.size(); ++c) {
      std::set<std::string> different;
      double bytes = 0, numbers = 0, words = 0;
      bool lists = true, several = false;
      for (size_t r = begin; r < rows.size(); ++r) {
        if (c >= rows[r].size()) continue;
        different.insert(rows[r][c]);
        const auto listed = lists ? listed_labels(rows[r][c]) : std::nullopt;
        lists = listed.has_value();
        several = several || (listed && listed->size() != 1);
        bytes += static_cast<double>(rows[r][c].size());
        numbers += is_number(rows[r][c]) ? 1 : 0;
        words += has_words(rows[r][c]) ? 1 : 0;
      }
      const auto count = static_cast<double>(std::max<size_t>(rows_, 1));
      columns_[c] = {
          different.size(), bytes / count, numbers / count, words / count, different.count(first_row_[c]) > 0,
          lists && several};
    }
  };
  sum_up(1);
  begins_with_names_ = header.value_or(looks_like_names());
  if (!begins_with_names_) sum_up(0);
}

bool ColumnSample::looks_like_names() const {
  constexpr double nearly_all = 0.95, most = 0.5;
  const bool index = first_row_.size() > 1 && first_row_.front().empty();  // pandas does not name it
  if (!std::all_of(first_row_.begin() + (index ? 1 : 0), first_row_.end(), may_name_column)) return false;
  if (std::set<std::string>(first_row_.begin(), first_row_.end()).size() < first_row_.size()) return false;
  // Among few labels one that no other row has, beside one word in a column of texts.
  bool found = false, of_labels = false, of_texts = false;
  for (size_t c = 0; c < columns_.size(); ++c) {
    const std::string name = lower(first_row_[c]);
    of_labels = of_labels || looks_like_labels(c);
    of_texts = of_texts || (columns_[c].words >= most && first_row_[c].find(' ') == std::string::npos);
    if (columns_[c].repeats_first) return false;
    if (label_names.count(name) + text_names.count(name) + other_names.count(name) > 0) found = true;
    if (columns_[c].numbers >= nearly_all && rows_ > 1) found = true;
  }
  return found || (of_labels && of_texts);
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
  const bool named = begins_with_names_ && !first_row_[column].empty() && index_of(first_row_[column]) == column;
  return named ? first_row_[column] : std::to_string(column + 1);
}

std::vector<size_t> ColumnSample::named(const std::set<std::string>& names) const {
  std::vector<size_t> found;
  for (size_t c = 0; c < columns_.size() && begins_with_names_; ++c)
    if (names.count(lower(first_row_[c])) > 0) found.push_back(c);
  return found;
}

bool ColumnSample::looks_like_labels(size_t column) const {
  const size_t different = columns_[column].different;
  return rows_ >= rows_needed && different >= 2 && different * examples_per_class <= rows_;
}

size_t ColumnSample::label_or_first(bool by_values) const {
  constexpr double nearly_all = 0.9;
  std::vector<size_t> found = named(label_names);
  if (found.size() == 1) return found.front();
  const bool first_is_none = !columns_.empty() && rows_ >= rows_needed &&
                             static_cast<double>(columns_[0].different) >= nearly_all * static_cast<double>(rows_);
  if (!by_values || !first_is_none) return 0;
  if (found.empty())
    for (size_t c = 0; c < columns_.size(); ++c) found.push_back(c);
  found.erase(std::remove_if(found.begin(), found.end(), [&](size_t c) { return !looks_like_labels(c); }), found.end());
  return found.size() == 1 ? found.front() : 0;
}

std::optional<size_t> ColumnSample::text_or_last(const std::vector<bool>& allowed) const {
  constexpr double much_longer = 4, most = 0.5;
  std::optional<size_t> last, longest;
  size_t names = 0;
  for (const size_t c : named(text_names)) {
    if (!allowed[c]) continue;
    ++names;
    last = c;
  }
  if (names == 1) return last;
  for (size_t c = 0; c < columns_.size(); ++c) {
    if (!allowed[c]) continue;
    last = c;
    if (columns_[c].words < most) continue;
    if (!longest || columns_[c].mean_bytes > columns_[*longest].mean_bytes) longest = c;
  }
  if (!longest || columns_[*longest].mean_bytes <= much_longer * columns_[*last].mean_bytes) return last;
  return longest;
}

std::optional<size_t> ColumnSample::likely_label() const {
  if (const auto names = named(label_names); !names.empty()) return names.front();
  std::optional<size_t> best;
  for (size_t c = 0; c < columns_.size(); ++c)
    if (looks_like_labels(c) && (!best || columns_[c].different < columns_[*best].different)) best = c;
  return best;
}

std::optional<size_t> ColumnSample::likely_text(size_t label) const {
  std::optional<size_t> best;
  for (size_t c = 0; c < columns_.size(); ++c)
    if (c != label && (!best || columns_[c].mean_bytes > columns_[*best].mean_bytes)) best = c;
  return best;
}

}  // namespace capstan
