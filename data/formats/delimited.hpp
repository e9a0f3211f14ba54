// What TSV and CSV share: rows of fields with a delimiter, read into a table and written with new columns. Included by
// the two formats alone. A reader of rows, which they bring, has
//   bool next(TableRecord&)   false at the end; throws Error for a row that is broken
//   void skip_line()          after an Error: goes on with the line after the one that it names
// tests/data/labelled/test_labelled_source.cpp holds them to the other formats, tests/cli/inputs/test_tables.cpp what
// is written.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/strings/utf8.hpp"
#include "data/formats/table_columns.hpp"
#include "data/formats/table_format.hpp"

namespace capstan {

struct TableRecord {
  std::vector<std::string> fields;
  std::string_view text;  // as in the file; of CSV without the last '\n', but with a '\r' in front of it
  int64_t line = 0;       // where the record begins, from 1

  bool is_empty_line() const { return fields.size() == 1 && fields[0].empty(); }
};

/// TableFormat::first_rows: up to `count` records, the header among them. Broken rows count, too, but are left out:
/// reading the table reports them.
template <class Reader>
std::vector<std::vector<std::string>> first_records(Reader reader, size_t count) {
  std::vector<std::vector<std::string>> rows;
  TableRecord record;
  for (bool more = true; more && count > 0;) {
    try {
      more = reader.next(record);
      if (!more || record.is_empty_line()) continue;
      rows.push_back(record.fields);
    } catch (const Error&) {
      reader.skip_line();
    }
    --count;
  }
  return rows;
}

/// TableFormat::read. `format`: its name.
template <class Reader>
void read_records(Reader reader, const TableInput& input, const char* format, char delimiter) {
  constexpr size_t rows_compared = 1000;  // that say how many fields a row has where no header does
  TableColumns columns(input, format, delimiter);
  if (!input.choice.header) columns.set_rows(first_records(reader, rows_compared));
  bool header = input.choice.header, more = true;
  TableRecord record;
  const auto next = [&] { more = reader.next(record); };
  while (more) {
    if (header) {
      next();
      if (!more || record.is_empty_line()) continue;
      columns.set_header(record.fields);
      header = false;
      continue;
    }
    if (!input.bad.guard(next)) {
      reader.skip_line();
      continue;
    }
    if (!more || record.is_empty_line()) continue;
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
  DelimitedWriter(const TableOutput& output, Dialect dialect);

  /// Throws Error for a header that has one of the new names already.
  void add(const TableRecord& record);
  std::string take() { return std::move(written_); }

 private:
  void add_names(const TableRecord& header);
  void add_field(const std::string& text);

  const TableOutput& output_;
  Dialect dialect_;
  const char* line_end_;
  bool header_;      // is the next row one?
  size_t next_ = 0;  // row of output_.rows
  std::string written_;
};

/// TableFormat::with_fields.
template <class Reader>
std::string records_with_fields(Reader reader, const TableOutput& output, Dialect dialect) {
  DelimitedWriter writer(output, dialect);
  for (TableRecord record; reader.next(record);) writer.add(record);
  return writer.take();
}

}  // namespace capstan
