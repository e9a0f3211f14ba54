// The list of formats, and how a format is found by its name or by the ending of a file. A new format is an entry here
// (docs/adding.md). tests/data/labelled/test_labelled_source.cpp.
#include "data/formats/table_format.hpp"

#include "core/strings/strings.hpp"
#include "core/strings/utf8.hpp"
#include "data/files/text_file.hpp"

namespace capstan {

const std::vector<TableFormat>& table_formats() {
  static const std::vector<TableFormat> formats{tsv_format(), csv_format(), jsonl_format(), fasttext_format()};
  return formats;
}

std::vector<std::string> data_format_names() {
  std::vector<std::string> names{format_by_name};
  for (const TableFormat& format : table_formats()) names.emplace_back(format.name);
  names.emplace_back(format_of_folders);
  return names;
}

const TableFormat* format_named(std::string_view name) {
  for (const TableFormat& format : table_formats())
    if (format.name == name) return &format;
  return nullptr;
}

const TableFormat* format_by_ending(const std::string& path) {
  const std::string name = unpacked_name(path);
  for (const TableFormat& format : table_formats())
    for (const std::string& ending : format.endings)
      if (ends_with(name, ending)) return &format;
  return nullptr;
}

const TableFormat& format_of(const std::string& path, std::string_view name) {
  const TableFormat* const format = name == format_by_name ? format_by_ending(path) : format_named(name);
  if (format != nullptr) return *format;
  constexpr std::pair<const char*, const char*> readers[] = {{".parquet", "read_parquet"}, {".feather", "read_feather"},
                                                             {".xlsx", "read_excel"},      {".xls", "read_excel"},
                                                             {".ods", "read_excel"},       {".dta", "read_stata"}};
  for (const auto& [ending, reader] : readers)
    if (ends_with(path, ending))
      throw Error(
          fmt::format("{0}: is not read; convert it: python3 -c \"import pandas; "
                      "pandas.{1}('{0}').to_csv('NEW.csv', index=False)\"",
                      path, reader));
  std::vector<std::string> endings, names;
  for (const TableFormat& known : table_formats()) {
    if (!known.endings.empty()) endings.push_back(known.endings.front());
    names.emplace_back(known.name);
  }
  throw Error(fmt::format(
      "{}: the name does not show the format ({}); set data.format: {}, or folders (each file is a text, in a folder "
      "per class); fasttext is for lines with words such as __label__good",
      path, join(endings), join(names)));
}

std::string_view without_mark(std::string_view content, const std::string& file) {
  check_is_text(content, file);
  return starts_with(content, "\xef\xbb\xbf") ? content.substr(3) : content;
}

std::string tsv_field(std::string text) {
  for (char& c : text)
    if (c == '\t' || c == '\n' || c == '\r') c = ' ';
  return text;
}

const char* line_end_of(std::string_view content) {
  const size_t end = content.find('\n');
  return end != std::string_view::npos && end > 0 && content[end - 1] == '\r' ? "\r\n" : "\n";
}

void read_table(std::string_view content, const std::string& file, const TableFormat& format,
                const ColumnChoice& columns, BadRows& bad, bool utf8, const TakeRow& take) {
  check_line_ends(content, file);
  format.read({without_mark(content, file), file, columns, bad, utf8, [&](LabelledText&& row, size_t end) {
                 // Texts, as targets are, may be of any bytes where the tokenizer can read them; labels are names in
                 // files of the run.
                 const std::string place = fmt::format("{}:{}", file, row.line);
                 if (!columns.targets) check_name(row.label, place, "the label");
                 for (const std::string& label : row.labels) check_name(label, place, "the label");
                 take(std::move(row), end);
               }});
}

std::vector<LabelledText> read_table(std::string_view content, const std::string& file, const TableFormat& format,
                                     const ColumnChoice& columns, BadRows& bad, bool utf8) {
  std::vector<LabelledText> rows;
  read_table(content, file, format, columns, bad, utf8,
             [&](LabelledText&& row, size_t) { rows.push_back(std::move(row)); });
  return rows;
}

std::vector<std::vector<std::string>> first_rows(std::string_view content, const std::string& file,
                                                 const TableFormat& format, size_t count, const Dialect& dialect) {
  if (format.first_rows == nullptr) return {};
  check_line_ends(content, file);
  return format.first_rows(without_mark(content, file), file, dialect, count);
}

std::string with_fields(const TableFormat& format, TableOutput output) {
  if (format.with_fields == nullptr)
    throw std::invalid_argument(fmt::format("with_fields: {} has no columns", format.name));
  const std::string_view whole = output.content;
  output.content = without_mark(whole, output.file);
  return std::string(whole.substr(0, whole.size() - output.content.size())) + format.with_fields(output);
}

std::vector<std::string_view> LabelledText::columns() const {
  std::vector<std::string_view> result;
  const std::string_view whole = text;
  size_t begin = 0;
  for (const size_t boundary : boundaries) {
    result.push_back(whole.substr(begin, boundary - 1 - begin));
    begin = boundary;
  }
  result.push_back(whole.substr(begin));
  return result;
}

}  // namespace capstan
