#include <algorithm>
#include <optional>

#include "core/base/error.hpp"
#include "core/strings/affixes.hpp"
#include "data/files/table_reader.hpp"

namespace capstan {

/// Do the first rows have equally many fields, and more than one? A single row proves only the comma.
static bool divides(std::string_view content, char delimiter) {
  constexpr size_t rows_read = 20;
  CsvReader reader(content, "", delimiter);
  size_t fields = 0, rows = 0;
  try {
    CsvRecord record;
    while (rows < rows_read && reader.next(record)) {
      if (record.is_empty_line()) continue;
      if (rows++ > 0 && record.fields.size() != fields) return false;
      fields = record.fields.size();
    }
  } catch (const Error&) {
    return false;
  }
  return fields > 1 && (rows > 1 || delimiter == ',');
}

/// Of a first line "sep=;"; none without one.
static std::optional<char> named_delimiter(std::string_view content) {
  constexpr std::string_view start = "sep=";
  const size_t after = start.size() + 1;
  const bool named = starts_with(content, start) && content.size() > after &&
                     (content[after] == '\n' || content.substr(after, 2) == "\r\n");
  return named ? std::optional(content[start.size()]) : std::nullopt;
}

char csv_delimiter(std::string_view content) {
  if (const auto named = named_delimiter(content)) return *named;
  for (const char delimiter : {',', ';', '\t', '|'})
    if (divides(content, delimiter)) return delimiter;
  return ',';
}

CsvReader::CsvReader(std::string_view content, std::string file, char delimiter)
    : rest_(content), file_(std::move(file)), delimiter_(delimiter) {
  if (named_delimiter(content)) skip_line();
}

/// The field whose opening quote is at the front.
std::string CsvReader::quoted_field() {
  const int64_t first_line = line_;
  const std::string_view opening = rest_;
  std::string field;
  rest_.remove_prefix(1);
  for (;;) {
    const size_t quote = rest_.find('"');
    if (quote == std::string_view::npos) {
      rest_ = opening;
      line_ = first_line;
      throw Error(fmt::format("{}:{}: a quoted field is not closed; a quote inside one must be doubled", file_, line_));
    }
    line_ += std::count(rest_.begin(), rest_.begin() + static_cast<int64_t>(quote), '\n');
    field.append(rest_.substr(0, quote));
    rest_.remove_prefix(quote + 1);
    if (rest_.empty() || rest_.front() != '"') break;
    field.push_back('"');
    rest_.remove_prefix(1);
  }
  const bool ends =
      rest_.empty() || rest_.front() == delimiter_ || rest_.front() == '\n' || rest_.substr(0, 2) == "\r\n";
  if (!ends)
    throw Error(fmt::format("{}:{}: text follows the closing quote of a field; a quote inside one must be doubled",
                            file_, line_));
  return field;
}

bool CsvReader::next(CsvRecord& record) {
  if (rest_.empty()) return false;
  const std::string_view begin = rest_;
  const char ends[] = {delimiter_, '\n'};
  record.fields.clear();
  record.line = line_;
  for (;;) {
    if (!rest_.empty() && rest_.front() == '"') {
      record.fields.push_back(quoted_field());
    } else {
      const size_t end = std::min(rest_.find_first_of(ends, 0, sizeof ends), rest_.size());
      std::string_view field = rest_.substr(0, end);
      rest_.remove_prefix(end);
      const bool ends_record = rest_.empty() || rest_.front() == '\n';
      if (ends_record && !field.empty() && field.back() == '\r') field.remove_suffix(1);
      record.fields.emplace_back(field);
    }
    if (rest_.substr(0, 2) == "\r\n") rest_.remove_prefix(1);
    record.text = begin.substr(0, begin.size() - rest_.size());
    if (rest_.empty()) return true;
    const bool ends_record = rest_.front() == '\n';
    rest_.remove_prefix(1);
    if (!ends_record) continue;
    ++line_;
    return true;
  }
}

void CsvReader::skip_line() {
  rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size() - 1) + 1);
  ++line_;
}

}  // namespace capstan
