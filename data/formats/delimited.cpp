// Writes rows of fields with a delimiter, for TSV and CSV. tests/cli/inputs/test_tables.cpp.
#include "data/formats/delimited.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/strings/strings.hpp"

namespace capstan {
namespace {

/// A field in quotes, which are doubled within it, where the dialect has quotes and the text needs them.
std::string csv_field(const std::string& text, const Dialect& dialect) {
  const char special[] = {dialect.delimiter, dialect.quote, '\r', '\n'};
  if (dialect.quote == '\0' || text.find_first_of(special, 0, sizeof special) == std::string::npos) return text;
  std::string quoted(1, dialect.quote);
  for (const char c : text) quoted += std::string(c == dialect.quote ? 2 : 1, c);
  return quoted + dialect.quote;
}

}  // namespace

DelimitedWriter::DelimitedWriter(const TableOutput& output, Dialect dialect)
    : output_(output), dialect_(dialect), line_end_(line_end_of(output.content)), header_(output.header) {}

void DelimitedWriter::add(const TableRecord& record) {
  written_ += ends_with(record.text, "\r") ? record.text.substr(0, record.text.size() - 1) : record.text;
  if (!record.is_empty_line()) {
    if (std::exchange(header_, false))
      add_names(record);
    else
      for (const AddedField& field : output_.rows.at(next_++)) add_field(field.value);
  }
  written_ += line_end_;
}

void DelimitedWriter::add_names(const TableRecord& header) {
  const std::vector<std::string> names = column_names(header.fields);
  for (const AddedField& column : output_.columns) {
    if (std::find(names.begin(), names.end(), column.name) != names.end())
      throw Error(fmt::format("--output: {} already has a column '{}'; rename it", output_.file, column.name));
    add_field(column.name);
  }
}

void DelimitedWriter::add_field(const std::string& text) {
  written_ += dialect_.delimiter + (dialect_.delimiter == '\t' ? tsv_field(text) : csv_field(text, dialect_));
}

}  // namespace capstan
