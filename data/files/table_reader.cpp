#include "data/files/table_reader.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.hpp"
#include "core/io/json.hpp"
#include "core/strings/affixes.hpp"
#include "core/strings/integer.hpp"
#include "core/strings/join.hpp"
#include "core/strings/utf8.hpp"
#include "data/files/text_file.hpp"

namespace capstan {
namespace {

constexpr std::string_view blanks = " \t\r\v\f";

/// A string of Python as JSON writes it: in double quotes. `text` begins with its quote, which it loses as far as the
/// string goes.
std::string json_string(std::string_view& text) {
  const char quote = text.front();
  std::string json = "\"";
  size_t at = 1;
  for (; at < text.size() && text[at] != quote; ++at) {
    if (text[at] == '\\' && at + 1 < text.size() && text[at + 1] == '\'') ++at;  // JSON does not escape it
    if (text[at] == '"') json += '\\';
    json += text[at];
    if (text[at] == '\\' && at + 1 < text.size()) json += text[++at];
  }
  text.remove_prefix(std::min(at + 1, text.size()));
  return json + '"';
}

/// Does what split_labels() made of a text in brackets begin like a list?
bool is_broken_list(const std::vector<std::string>& labels) {
  if (labels.empty() || labels.front()[0] != '[' || labels.back().empty() || labels.back().back() != ']') return false;
  const char next = labels.front()[1];
  return next == '[' || next == '\'' || next == '"' ||
         (labels.size() > 1 && labels.front().find(']') == std::string::npos);
}

/// Throws Error naming `place` for a list that could not be read, an empty label and one that is given twice.
void check_labels(const std::vector<std::string>& labels, const std::string& place) {
  std::set<std::string_view> seen;
  if (is_broken_list(labels))
    throw Error(
        fmt::format("{}: the labels look like a list, but not as JSON or Python write it: {}; quote each of "
                    "them, with commas in between, as in ['a', 'b']",
                    place, join_first(labels, ", ")));
  for (const std::string& label : labels) {
    if (label.empty()) throw Error(fmt::format("{}: label {} of {} is empty", place, seen.size() + 1, labels.size()));
    if (!seen.insert(label).second)
      throw Error(fmt::format("{}: the label '{}' is given twice", place, label.substr(0, 100)));
  }
}

/// A line of fastText: words that begin with "__label__" are its labels, the rest is its text.
struct FastTextLine {
  std::vector<std::string> labels;
  std::string text;
};
FastTextLine fasttext_line(std::string_view line) {
  constexpr std::string_view prefix = "__label__";
  FastTextLine result;
  for (size_t at = 0; at < line.size();) {
    const size_t word = std::min(line.find_first_not_of(blanks, at), line.size());
    const size_t end = std::min(line.find_first_of(blanks, word), line.size());
    const std::string_view token = line.substr(word, end - word);
    if (starts_with(token, prefix))
      result.labels.emplace_back(token.substr(prefix.size()));
    else
      result.text += line.substr(at, end - at);
    at = end;
  }
  result.text = trimmed(result.text, blanks);
  return result;
}

/// Columns of TSV and CSV, found by the header if there is one.
class Columns {
 public:
  Columns(const ColumnChoice& choice, const std::string& file, TableFormat format)
      : choice_(choice), file_(file), format_(format) {
    if (!choice.header) choose({});
  }

  bool chosen() const { return chosen_; }

  void choose(const std::vector<std::string>& header) {
    if (choice_.labels) label_ = number(choice_.label.value_or("1"), header);
    for (const std::string& column : choice_.text) text_.push_back(number(column, header));
    if (text_.empty()) text_.push_back(-1);
    chosen_ = true;
  }

  LabelledText row(const std::vector<std::string>& fields, int64_t line) const {
    const size_t label = place(label_, fields.size());
    bool fits = !choice_.labels || label < fields.size();
    LabelledText result{fits && choice_.labels ? fields[label] : "", "", line};
    for (size_t i = 0; i < text_.size() && fits; ++i) {
      const size_t at = place(text_[i], fields.size());
      fits = at < fields.size() && (at != label || !choice_.labels);
      if (fits) result.add_column(fields[at], i == 0);
    }
    if (fits && choice_.labels && !choice_.label_separator.empty())
      check_labels(result.labels = split_labels(result.label, choice_.label_separator),
                   fmt::format("{}:{}", file_, line));
    if (fits) return result;
    const bool pairs = std::string_view(choice_.label_key) != "label_column", tsv = format_ == TableFormat::tsv;
    // A quote that is not closed on its line.
    const bool quoted = tsv && std::any_of(fields.begin(), fields.end(), [](const std::string& field) {
                          return std::count(field.begin(), field.end(), '"') % 2 == 1;
                        });
    throw Error(fmt::format(
        "{}:{}: too few columns: found {}, but the {} is column {} and the {} column {}; columns are separated "
        "by {} (format {}); choose others with {}{}",
        file_, line, fields.size(), pairs ? "target" : "label", label_, pairs ? "source" : "text", join(text_, " and "),
        tsv ? "tabs" : "commas", enum_name(format_), choice_.keys(),
        quoted ? "; tsv has no quotes: for quoted fields, also with line ends in them, set format: csv" : ""));
  }

 private:
  static size_t place(int64_t column, size_t columns) {
    const int64_t at = column > 0 ? column - 1 : static_cast<int64_t>(columns) + column;
    return at < 0 ? columns : static_cast<size_t>(at);
  }

  int64_t number(const std::string& column, const std::vector<std::string>& header) const {
    const auto found = std::find(header.begin(), header.end(), column);
    if (found != header.end()) return found - header.begin() + 1;
    const auto value = parse_integer(column);
    if (value && *value != 0) return *value;
    if (!choice_.header)
      throw ConfigError(fmt::format(
          "data: column '{}' is not a number (1 is the first, -1 the last); column names require header: true",
          column));
    throw Error(fmt::format(
        "{}:1: no column is called '{}'; the first row has: {}; choose others with {}, or give the file the header of "
        "the training data",
        file_, column, join_first(header), choice_.keys()));
  }

  const ColumnChoice& choice_;
  const std::string& file_;
  TableFormat format_;
  bool chosen_ = false;
  int64_t label_ = 1;
  std::vector<int64_t> text_;
};

/// Where a file comes from, and what is done with what cannot be read of it.
struct TableFile {
  std::string_view content;
  const std::string& name;
  const ColumnChoice& choice;
  BadRows& bad;
  bool utf8;
};

std::vector<LabelledText> read_tsv(const TableFile& file) {
  std::vector<LabelledText> rows;
  Columns columns(file.choice, file.name, TableFormat::tsv);
  Lines lines(file.content);
  for (Line line; lines.next(line);) {
    if (line.text.empty()) continue;
    if (!columns.chosen()) {
      columns.choose(tsv_fields(line.text));
      continue;
    }
    file.bad.guard([&] {
      if (file.utf8) check_utf8(line.text, file.name, line.number);
      rows.push_back(columns.row(tsv_fields(line.text), line.number));
    });
  }
  return rows;
}

std::vector<LabelledText> read_csv(const TableFile& file) {
  std::vector<LabelledText> rows;
  Columns columns(file.choice, file.name, TableFormat::csv);
  CsvReader reader(file.content, file.name, csv_delimiter(file.content));
  CsvRecord record;
  bool more = true;
  while (!columns.chosen() && (more = reader.next(record)))
    if (!record.is_empty_line()) columns.choose(record.fields);
  while (more) {
    if (!file.bad.guard([&] { more = reader.next(record); })) {
      reader.skip_line();
      continue;
    }
    if (!more || record.is_empty_line()) continue;
    file.bad.guard([&] {
      if (file.utf8) check_utf8(record.text, file.name, record.line);
      rows.push_back(columns.row(record.fields, record.line));
    });
  }
  return rows;
}

const nlohmann::json& json_value(const nlohmann::json& object, const std::string& key, const std::string& place,
                                 const ColumnChoice& choice) {
  const auto found = object.find(key);
  if (found != object.end()) return *found;
  std::vector<std::string> keys;
  for (const auto& item : object.items()) keys.push_back(item.key());
  const bool several = key == "label" && !choice.label && object.contains("labels");
  throw Error(fmt::format("{}: no key '{}'; found: {}; {}", place, key, join_first(keys),
                          several ? "for several labels per text, set data.multi_label: true"
                                  : fmt::format("choose others with {}", choice.keys())));
}

std::string json_field(const nlohmann::json& object, const std::string& key, bool integers, const std::string& place,
                       const ColumnChoice& choice) {
  const nlohmann::json& found = json_value(object, key, place, choice);
  if (found.is_string()) return found.get<std::string>();
  if (integers && found.is_number_integer()) return found.dump();
  const bool several = integers && found.is_array() && std::string_view(choice.label_key) == "label_column";
  throw Error(fmt::format("{}: '{}' must be {}, found {}{}", place, key,
                          integers ? "a string or an integer" : "a string", json_excerpt(found),
                          several ? "; for several labels per text, set data.multi_label: true" : ""));
}

/// A list of strings or integers, or what a field of a table would be.
std::vector<std::string> json_labels(const nlohmann::json& object, const std::string& key, const std::string& place,
                                     const ColumnChoice& choice) {
  const nlohmann::json& found = json_value(object, key, place, choice);
  std::vector<std::string> labels;
  if (!found.is_array()) labels = split_labels(json_field(object, key, true, place, choice), choice.label_separator);
  for (const nlohmann::json& label : found.is_array() ? found : nlohmann::json::array()) {
    if (!label.is_string() && !label.is_number_integer())
      throw Error(fmt::format("{}: label {} in '{}' must be a string or an integer, found {}", place, labels.size() + 1,
                              key, json_excerpt(label)));
    labels.push_back(label.is_string() ? label.get<std::string>() : label.dump());
  }
  check_labels(labels, place);
  return labels;
}

LabelledText read_json(const Line& line, const std::string& file, const ColumnChoice& choice) {
  const std::vector<std::string> keys = choice.text.empty() ? std::vector<std::string>{"text"} : choice.text;
  const std::string place = fmt::format("{}:{}", file, line.number);
  const nlohmann::json object = parse_json(line.text, {file, line.number});
  if (!object.is_object())
    throw Error(fmt::format("{}: every line must be a JSON object such as {{\"label\": 1, \"text\": \"...\"}}", place));
  LabelledText row{"", "", line.number};
  if (choice.labels && choice.label_separator.empty())
    row.label = json_field(object, choice.label.value_or("label"), true, place, choice);
  else if (choice.labels)
    row.labels = json_labels(object, choice.label.value_or("labels"), place, choice);
  for (size_t i = 0; i < keys.size(); ++i) row.add_column(json_field(object, keys[i], false, place, choice), i == 0);
  return row;
}

/// A row for every line that is not blank.
template <class Read>
std::vector<LabelledText> read_lines(const TableFile& file, bool utf8, const Read& read) {
  std::vector<LabelledText> rows;
  Lines lines(file.content);
  for (Line line; lines.next(line);)
    if (line.text.find_first_not_of(" \t") != std::string_view::npos)
      file.bad.guard([&] {
        if (utf8) check_utf8(line.text, file.name, line.number);
        rows.push_back(read(line, file.name, file.choice));
      });
  return rows;
}

LabelledText read_fasttext_line(const Line& line, const std::string& file, const ColumnChoice& choice) {
  const std::string place = fmt::format("{}:{}", file, line.number);
  FastTextLine read = fasttext_line(line.text);
  LabelledText row{"", std::move(read.text), line.number};
  if (!choice.labels) return row;
  check_labels(read.labels, place);
  if (!choice.label_separator.empty()) {
    row.labels = std::move(read.labels);
    return row;
  }
  if (read.labels.size() != 1)
    throw Error(
        fmt::format("{}: found {} labels (words that begin with __label__) instead of one; for any number of "
                    "labels per text, set data.multi_label: true",
                    place, read.labels.size()));
  row.label = std::move(read.labels.front());
  return row;
}

}  // namespace

std::string_view without_mark(std::string_view content, const std::string& file) {
  if (starts_with(content, "\xff\xfe") || starts_with(content, "\xfe\xff"))
    throw Error(fmt::format(
        "{0}: is UTF-16, as Excel's \"Unicode Text\" is; save it as \"CSV UTF-8\", or convert it with iconv "
        "-f UTF-16 -t UTF-8 {0} > NEW",
        file));
  return starts_with(content, "\xef\xbb\xbf") ? content.substr(3) : content;
}

std::optional<std::vector<std::string>> listed_labels(std::string_view text) {
  text = trimmed(text, blanks);
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return std::nullopt;
  std::string json;
  while (!text.empty())
    if (text.front() == '\'' || text.front() == '"') {
      json += json_string(text);
    } else {
      json += text.front();
      text.remove_prefix(1);
    }
  const nlohmann::json list = try_parse_json(json);
  std::vector<std::string> labels;
  if (!list.is_array()) return std::nullopt;
  for (const nlohmann::json& label : list) {
    if (!label.is_string() && !label.is_number_integer()) return std::nullopt;
    labels.push_back(label.is_string() ? label.get<std::string>() : label.dump());
  }
  return labels;
}

std::vector<std::string> split_labels(std::string_view text, std::string_view separator) {
  if (auto listed = listed_labels(text)) return *std::move(listed);
  std::vector<std::string> labels;
  if (trimmed(text, blanks).empty()) return labels;
  const bool by_blanks = trimmed(separator, blanks).empty();  // runs of them are one separator
  for (const std::string_view part : split(text, separator))
    if (const std::string_view label = trimmed(part, blanks); !label.empty() || !by_blanks) labels.emplace_back(label);
  return labels;
}

std::vector<std::string> tsv_fields(std::string_view line) {
  const std::vector<std::string_view> fields = split(line, "\t");
  return {fields.begin(), fields.end()};
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

TableFormat format_of(const std::string& path) {
  const std::string name = unpacked_name(path);
  if (ends_with(name, ".tsv")) return TableFormat::tsv;
  if (ends_with(name, ".csv")) return TableFormat::csv;
  if (ends_with(name, ".jsonl") || ends_with(name, ".ndjson")) return TableFormat::jsonl;
  throw Error(fmt::format(
      "{}: the name does not show the format (.tsv, .csv, .jsonl); set data.format: tsv, csv, jsonl, fasttext (lines "
      "that begin with __label__) or folders (each file is a text, in a folder per class)",
      path));
}

std::vector<std::vector<std::string>> first_rows(std::string_view content, const std::string& file, TableFormat format,
                                                 size_t count) {
  std::vector<std::vector<std::string>> rows;
  if (format != TableFormat::tsv && format != TableFormat::csv) return rows;
  content = without_mark(content, file);
  const auto add = [&](std::vector<std::string> fields) {
    if (fields.size() > 1 || !fields[0].empty()) rows.push_back(std::move(fields));
  };
  if (format == TableFormat::tsv) {
    Lines lines(content);
    for (Line line; rows.size() < count && lines.next(line);) add(tsv_fields(line.text));
  } else {
    CsvReader reader(content, file, csv_delimiter(content));
    try {
      for (CsvRecord record; rows.size() < count && reader.next(record);) add(record.fields);
    } catch (const Error&) {  // read_table() reports it
    }
  }
  return rows;
}

std::vector<LabelledText> read_table(std::string_view content, const std::string& file, TableFormat format,
                                     const ColumnChoice& columns, BadRows& bad, bool utf8) {
  const TableFile table{without_mark(content, file), file, columns, bad, utf8};
  switch (format == TableFormat::by_name ? format_of(file) : format) {
    case TableFormat::csv:
      return read_csv(table);
    case TableFormat::jsonl:
      return read_lines(table, /*utf8=*/false, read_json);  // the parser refuses what is not UTF-8
    case TableFormat::tsv:
      return read_tsv(table);
    case TableFormat::fasttext:
      return read_lines(table, utf8, read_fasttext_line);
    case TableFormat::by_name:
    case TableFormat::folders:
      break;
  }
  throw std::invalid_argument(fmt::format("read_table: {} is no table", file));
}

}  // namespace capstan
