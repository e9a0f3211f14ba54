#include "run/inputs/table_output.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/error.hpp"
#include "core/io/json.hpp"
#include "core/strings/affixes.hpp"
#include "data/files/text_file.hpp"

namespace capstan {
namespace {

using Fields = std::vector<AddedField>;

std::string csv_field(const std::string& text, char delimiter) {
  const char special[] = {delimiter, '"', '\r', '\n'};
  if (text.find_first_of(special, 0, sizeof special) == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

/// Writes the rows one after the other.
class Output {
 public:
  Output(const std::string& file, bool header, const std::vector<Fields>& added)
      : file_(file), header_(header), added_(added) {}

  void begin(std::string_view content, char delimiter) {
    const size_t end = content.find('\n');
    line_end_ = end != std::string_view::npos && end > 0 && content[end - 1] == '\r' ? "\r\n" : "\n";
    delimiter_ = delimiter;
  }

  /// Before the rows: all are filled up to the longest, so that what is added is one column.
  void widen(size_t fields) { width_ = std::max(width_, fields); }

  void add(std::string_view row, const std::vector<std::string>& fields) {
    out_ += ends_with(row, "\r") ? row.substr(0, row.size() - 1) : row;
    if (fields.size() > 1 || !fields.front().empty()) {  // no empty line
      out_.append(width_ - fields.size(), delimiter_);
      const bool names = std::exchange(header_, false);
      for (const AddedField& field : names ? added_.front() : added_.at(next_++)) {
        if (names) refuse(field.name, std::find(fields.begin(), fields.end(), field.name) != fields.end());
        const std::string& text = names ? field.name : field.value;
        out_ += delimiter_ + (delimiter_ == '\t' ? tsv_field(text) : csv_field(text, delimiter_));
      }
    }
    out_ += line_end_;
  }

  void add_json(std::string_view line) {
    const size_t end = line.find_last_of('}');
    if (end != std::string_view::npos) {
      const nlohmann::json object = try_parse_json(line);
      out_ += line.substr(0, end);
      bool first = object.empty();
      for (const AddedField& field : added_.at(next_++)) {
        refuse(field.name, object.contains(field.name));
        out_ += fmt::format(
            "{}\"{}\": {}", std::exchange(first, false) ? "" : ", ", field.name,
            field.number ? field.value
                         : nlohmann::json(field.value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
      }
      out_ += '}';
    }
    out_ += line_end_;
  }

  std::string take() { return std::move(out_); }

 private:
  void refuse(const std::string& name, bool taken) const {
    if (taken) throw Error(fmt::format("--output: {} already has a column '{}'; rename it", file_, name));
  }

  const std::string& file_;
  bool header_;  // is the next row one?
  const std::vector<Fields>& added_;
  char delimiter_ = '\t';
  const char* line_end_ = "\n";
  size_t width_ = 0, next_ = 0;
  std::string out_;
};

}  // namespace

std::string tsv_field(std::string text) {
  for (char& c : text)
    if (c == '\t' || c == '\n' || c == '\r') c = ' ';
  return text;
}

std::string with_fields(std::string_view content, const std::string& file, TableFormat format, bool header,
                        const std::vector<std::vector<AddedField>>& added) {
  if (added.empty()) return std::string(content);
  const std::string_view table = without_mark(content, file);
  Output output(file, header, added);
  output.begin(table, format == TableFormat::csv ? csv_delimiter(table) : '\t');
  const auto for_each_row = [&](const auto& take) {
    if (format == TableFormat::csv) {
      CsvReader reader(table, file, csv_delimiter(table));
      for (CsvRecord record; reader.next(record);) take(record.text, record.fields);
    } else {
      Lines lines(table);
      for (Line line; lines.next(line);) take(line.text, tsv_fields(line.text));
    }
  };
  if (format == TableFormat::jsonl) {
    Lines lines(table);
    for (Line line; lines.next(line);) output.add_json(line.text);
  } else {
    for_each_row([&](std::string_view, const std::vector<std::string>& fields) { output.widen(fields.size()); });
    for_each_row([&](std::string_view row, const std::vector<std::string>& fields) { output.add(row, fields); });
  }
  return std::string(content.substr(0, content.size() - table.size())) + output.take();
}

}  // namespace capstan
