// A delimiter is found by trying each of four on the first rows. Records are cut from the front of the content, which
// may be mapped, so a field is copied only once, and a quoted one may go over lines.
#include "data/formats/csv_format.hpp"

#include <algorithm>
#include <optional>

#include "core/base/error.hpp"
#include "core/strings/strings.hpp"

namespace capstan {

/// How well a delimiter divides the first rows: the share of the rows that it divides into as many fields as the first
/// one; 0 if it does not divide the first one. A single row proves nothing but the comma.
static double share_divided(std::string_view content, char delimiter, char quote) {
  constexpr size_t rows_read = 20;
  CsvReader reader(content, "", {delimiter, quote});
  size_t rows = 0, alike = 0, width = 0;
  try {
    for (TableRecord record; rows < rows_read && reader.next(record);) {
      if (record.is_empty_line()) continue;
      if (rows++ == 0) width = record.fields.size();
      alike += record.fields.size() == width ? 1 : 0;
    }
  } catch (const Error&) {
    return 0;
  }
  if (width < 2 || (rows == 1 && delimiter != ',')) return 0;
  return static_cast<double>(alike) / static_cast<double>(rows);
}

/// The delimiter that a first line "sep=;" names; none without such a line.
static std::optional<char> named_delimiter(std::string_view content) {
  constexpr std::string_view start = "sep=";
  const size_t after = start.size() + 1;
  const bool named = starts_with(content, start) && content.size() > after &&
                     (content[after] == '\n' || content.substr(after, 2) == "\r\n");
  return named ? std::optional(content[start.size()]) : std::nullopt;
}

char csv_delimiter(std::string_view content, const std::string& file, char quote) {
  constexpr double min_share = 0.5;  // rows whose texts hold delimiters may lack their quotes
  if (const auto named = named_delimiter(content)) return *named;
  std::optional<char> probable;
  for (const char delimiter : {',', ';', '\t', '|'}) {
    const double share = share_divided(content, delimiter, quote);
    if (share == 1 && probable)
      throw Error(
          fmt::format("{}: its columns may be separated by {} or by {}; set data.delimiter to '{}' or '{}', or write "
                      "sep= and one of them into a first line of its own",
                      file, name_of_delimiter(*probable), name_of_delimiter(delimiter), *probable, delimiter));
    if (share == 1) return delimiter;
    if (share >= min_share && !probable) probable = delimiter;
  }
  return probable.value_or(',');
}

Dialect csv_dialect(std::string_view content, const std::string& file, Dialect given) {
  if (given.delimiter == '\0') given.delimiter = csv_delimiter(content, file, given.quote);
  return given;
}

CsvReader::CsvReader(std::string_view content, std::string file, Dialect dialect)
    : rest_(content), file_(std::move(file)), dialect_(dialect) {
  if (named_delimiter(content)) skip_line();
}

/// Reads the field whose opening quote is at the front. For a quote that is not closed, the reader stays where the
/// field begins, so that skip_line() leaves out one line and not the rest of the file.
std::string CsvReader::quoted_field() {
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

bool CsvReader::next(TableRecord& record) {
  if (rest_.empty()) return false;
  const std::string_view begin = rest_;
  const char ends[] = {dialect_.delimiter, '\n'};
  record.fields.clear();
  record.line = line_;
  for (;;) {
    if (dialect_.quote != '\0' && !rest_.empty() && rest_.front() == dialect_.quote) {
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

TableFormat csv_format() {
  TableFormat format{"csv", [](const TableInput& input) {
                       const Dialect dialect = csv_dialect(input.content, input.file, input.choice.dialect);
                       return read_records(CsvReader(input.content, input.file, dialect), input, "csv",
                                           dialect.delimiter);
                     }};
  format.endings = {".csv"};
  format.fields = TableFormat::Fields::columns;
  format.line_ends = true;
  format.first_rows = [](std::string_view content, const std::string& file, const Dialect& dialect, size_t count) {
    return first_records(CsvReader(content, file, csv_dialect(content, file, dialect)), count);
  };
  format.with_fields = [](const TableOutput& output) {
    const Dialect dialect = csv_dialect(output.content, output.file, output.dialect);
    return records_with_fields(CsvReader(output.content, output.file, dialect), output, dialect);
  };
  format.delimiter = [](std::string_view content, const std::string& file, const Dialect& dialect) {
    return csv_dialect(content, file, dialect).delimiter;
  };
  return format;
}

}  // namespace capstan
