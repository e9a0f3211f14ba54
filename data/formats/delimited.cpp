// The formats tsv and csv: records of fields with a delimiter, read into a table and written with new columns. tsv is
// the dialect of tabs without quotes. tests/data/labelled/test_labelled_source.cpp holds them to the other formats,
// tests/cli/inputs/test_tables.cpp what is written.
#include <algorithm>
#include <utility>

#include "core/base/error.hpp"
#include "core/strings/strings.hpp"
#include "core/strings/utf8.hpp"
#include "data/formats/dialect.hpp"
#include "data/formats/records.hpp"
#include "data/formats/table_columns.hpp"
#include "data/formats/table_format.hpp"

namespace capstan {
namespace {

/// Up to `count` records, the header among them. Broken rows count, too, but are left out: reading the table reports
/// them.
std::vector<std::vector<std::string>> first_records(RecordReader reader, size_t count) {
  std::vector<std::vector<std::string>> rows;
  for (TableRecord record; count > 0 && reader.next_or_none(record);) {
    if (record.is_empty_line()) continue;
    if (!record.fields.empty()) rows.push_back(record.fields);
    --count;
  }
  return rows;
}

/// TableFormat::read. `format`: its name.
void read_records(const TableInput& input, const Dialect& dialect, const char* format) {
  constexpr size_t rows_compared = 1000;  // that say how many fields a row has where no header does
  RecordReader reader(input.content, input.file, dialect);
  TableColumns columns(input, format, dialect.delimiter);
  if (!input.choice.header) columns.set_rows(first_records(reader, rows_compared));
  std::vector<std::string> header;
  bool more = true, names = false;
  TableRecord record;
  const auto next = [&] { more = reader.next(record); };
  while (more) {
    if (input.choice.header && header.empty()) {
      next();
      if (!more || record.is_empty_line()) continue;
      columns.set_header(header = record.fields);
      names = std::none_of(header.begin(), header.end(), parse_integer);  // not of data.header over a row of data
      continue;
    }
    if (!input.bad.guard(next)) {
      reader.skip_line();
      continue;
    }
    if (!more || record.is_empty_line()) continue;
    if (names && record.fields == header) {
      input.bad.header_again(fmt::format("{}:{}", input.file, record.line));
      continue;
    }
    const bool good = input.bad.guard([&] {
      if (input.utf8) check_utf8(record.text, input.file, record.line);
      input.take(columns.row(record.fields, record.line),
                 static_cast<size_t>(record.text.end() - input.content.begin()));
    });
    if (!good) input.bad.lost(columns.label_of(record.fields));
  }
}

/// Writes a table with new columns: the records as they were, each with its new fields at the end.
class DelimitedWriter {
 public:
  DelimitedWriter(const TableOutput& output, Dialect dialect)
      : output_(output), dialect_(dialect), line_end_(line_end_of(output.content)) {}

  /// Throws Error for a header that has one of the new names already.
  std::string run() {
    RecordReader reader(output_.content, output_.file, dialect_);
    for (TableRecord record; reader.next_or_none(record); written_ += line_end_) {
      written_ += ends_with(record.text, "\r") ? record.text.substr(0, record.text.size() - 1) : record.text;
      if (!record.fields.empty() && !record.is_empty_line()) add_fields(record);
    }
    return std::move(written_);
  }

 private:
  void add_fields(const TableRecord& record) {
    if (output_.header && header_.empty()) {
      header_ = record.fields;
      check_names();
    }
    const bool names = output_.header && record.fields == header_;
    const bool row = !names && next_ < output_.lines.size() && output_.lines[next_] == record.line;
    for (size_t c = 0; c < output_.columns.size(); ++c)
      add_field(names ? output_.columns[c].name : row ? output_.rows.at(next_).at(c).value : "");
    if (row) ++next_;
  }

  void check_names() const {
    const std::vector<std::string> names = column_names(header_);
    for (const AddedField& column : output_.columns)
      if (std::find(names.begin(), names.end(), column.name) != names.end())
        throw Error(fmt::format("--output: {} already has a column '{}'; rename it", output_.file, column.name));
  }

  /// A field in quotes, which are doubled within it, where the dialect has quotes and the text needs them.
  void add_field(const std::string& text) {
    written_ += dialect_.delimiter;
    const char special[] = {dialect_.delimiter, dialect_.quote, '\r', '\n'};
    if (dialect_.delimiter == '\t') {
      written_ += tsv_field(text);
    } else if (dialect_.quote == '\0' || text.find_first_of(special, 0, sizeof special) == std::string::npos) {
      written_ += text;
    } else {
      written_ += dialect_.quote;
      for (const char c : text) written_ += std::string(c == dialect_.quote ? 2 : 1, c);
      written_ += dialect_.quote;
    }
  }

  const TableOutput& output_;
  Dialect dialect_;
  const char* line_end_;
  std::vector<std::string> header_ = {};
  size_t next_ = 0;  // row of output_.rows
  std::string written_;
};

Dialect of_tabs(std::string_view, const std::string&, Dialect) { return {'\t', '\0'}; }

template <Dialect (*dialect_of)(std::string_view, const std::string&, Dialect)>
TableFormat delimited(TableFormat format) {
  format.fields = TableFormat::Fields::columns;
  format.dialect = dialect_of;
  format.first_rows = [](std::string_view content, const std::string& file, const Dialect& dialect, size_t count) {
    return first_records(RecordReader(content, file, dialect_of(content, file, dialect)), count);
  };
  format.with_fields = [](const TableOutput& output) {
    return DelimitedWriter(output, dialect_of(output.content, output.file, output.dialect)).run();
  };
  return format;
}

}  // namespace

TableFormat tsv_format() {
  return delimited<of_tabs>({"tsv",
                             [](const TableInput& input) {
                               read_records(input, {'\t', '\0'}, "tsv");
                             },
                             {".tsv"}});
}

TableFormat csv_format() {
  const auto read = [](const TableInput& input) {
    read_records(input, found_dialect(input.content, input.file, input.choice.dialect), "csv");
  };
  TableFormat format = delimited<found_dialect>({"csv", read, {".csv"}});
  format.line_ends = true;
  return format;
}

}  // namespace capstan
