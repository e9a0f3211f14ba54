// Records are cut from the front of the content, which may be mapped, so a field is copied only once, and a quoted one
// may go over lines.
#include "data/formats/records.hpp"

#include <algorithm>
#include <map>

#include "core/base/error.hpp"
#include "core/strings/strings.hpp"

namespace capstan {

char named_delimiter(std::string_view content) {
  constexpr std::string_view start = "sep=";
  const size_t after = start.size() + 1;
  const bool named = starts_with(content, start) && content.size() > after &&
                     (content[after] == '\n' || content.substr(after, 2) == "\r\n");
  return named ? content[start.size()] : '\0';
}

size_t common_width(const std::vector<std::vector<std::string>>& rows) {
  std::map<size_t, size_t> counts;  // how many rows have so many fields
  for (const std::vector<std::string>& fields : rows) ++counts[fields.size()];
  size_t width = rows.empty() ? 0 : rows.front().size();
  for (const auto& [fields, count] : counts)
    if (count > counts[width]) width = fields;
  return width;
}

RecordReader::RecordReader(std::string_view content, std::string file, Dialect dialect)
    : rest_(content), file_(std::move(file)), dialect_(dialect) {
  if (named_delimiter(content) != '\0') skip_line();
}

/// Reads the field whose opening quote is at the front. For a quote that is not closed, the reader stays where the
/// field begins, so that skip_line() leaves out one line and not the rest of the file.
std::string RecordReader::quoted_field() {
  const int64_t first_line = line_;
  const std::string_view opening = rest_;
  std::string field;
  rest_.remove_prefix(1);
  for (;;) {
    const size_t quote = rest_.find(dialect_.quote);
    if (quote == std::string_view::npos) {
      rest_ = opening;
      line_ = first_line;
      throw Error(fmt::format("{}:{}: a quoted field is not closed; a quote inside one must be doubled", file_, line_));
    }
    line_ += std::count(rest_.begin(), rest_.begin() + static_cast<int64_t>(quote), '\n');
    field.append(rest_.substr(0, quote));
    rest_.remove_prefix(quote + 1);
    if (rest_.empty() || rest_.front() != dialect_.quote) break;
    field.push_back(dialect_.quote);
    rest_.remove_prefix(1);
  }
  const bool ends =
      rest_.empty() || rest_.front() == dialect_.delimiter || rest_.front() == '\n' || rest_.substr(0, 2) == "\r\n";
  if (!ends)
    throw Error(fmt::format("{}:{}: text follows the closing quote of a field; a quote inside one must be doubled",
                            file_, line_));
  return field;
}

bool RecordReader::next(TableRecord& record) {
  if (rest_.empty()) return false;
  const std::string_view begin = rest_;
  record.fields.clear();
  record.line = line_;
  size_t line_end = std::min(rest_.find('\n'), rest_.size());  // in rest_
  for (;;) {
    if (dialect_.quote != '\0' && !rest_.empty() && rest_.front() == dialect_.quote) {
      const size_t before = rest_.size();
      record.fields.push_back(quoted_field());
      const size_t passed = before - rest_.size();
      line_end = passed <= line_end ? line_end - passed : std::min(rest_.find('\n'), rest_.size());
    } else {
      const size_t end = std::min(rest_.substr(0, line_end).find(dialect_.delimiter), line_end);
      std::string_view field = rest_.substr(0, end);
      rest_.remove_prefix(end);
      line_end -= end;
      if (line_end == 0 && ends_with(field, "\r")) field.remove_suffix(1);
      record.fields.emplace_back(field);
    }
    if (rest_.substr(0, 2) == "\r\n") rest_.remove_prefix(1);
    record.text = begin.substr(0, begin.size() - rest_.size());
    if (rest_.empty()) return true;
    const bool ends_record = rest_.front() == '\n';
    rest_.remove_prefix(1);
    if (ends_record) {
      ++line_;
      return true;
    }
    --line_end;
  }
}

bool RecordReader::next_or_none(TableRecord& record) {
  const std::string_view begin = rest_;
  try {
    return next(record);
  } catch (const Error&) {
    skip_line();
    record.fields.clear();
    record.text = begin.substr(0, begin.size() - rest_.size());
    if (ends_with(record.text, "\n")) record.text.remove_suffix(1);
    return true;
  }
}

void RecordReader::skip_line() {
  rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size() - 1) + 1);
  ++line_;
}

}  // namespace capstan
