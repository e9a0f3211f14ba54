// The format jsonl of tables (table_format.hpp): an object per line, or a file that is one array of objects, whose
// elements are cut out by counting brackets and then read like lines. tests/data/labelled/test_labelled_source.cpp,
// test_multi_label.cpp, tests/fuzz/fuzz_jsonl.cpp.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/error.hpp"
#include "core/io/json.hpp"
#include "core/strings/strings.hpp"
#include "data/formats/line_rows.hpp"
#include "data/formats/row_labels.hpp"

namespace capstan {
namespace {

using nlohmann::json;

/// A row while it is read: its object, and what errors need to say about it.
struct JsonRow {
  const json& object;
  const std::string& place;
  const ColumnChoice& choice;

  const json& value(const std::string& key) const {
    const auto found = object.find(key);
    if (found != object.end()) return *found;
    std::vector<std::string> keys;
    for (const auto& item : object.items()) keys.push_back(item.key());
    const bool several = key == "label" && !choice.label && object.contains("labels");
    throw Error(fmt::format("{}: no key '{}'; found: {}; {}", place, key, join_first(keys),
                            several ? "for several labels per text, set data.multi_label: true"
                                    : fmt::format("choose others with {}", choice.keys())));
  }

  std::string text(const std::string& key) const {
    const json& field = value(key);
    if (!field.is_string())
      throw Error(fmt::format("{}: '{}' must be a string, found {}", place, key, json_excerpt(field)));
    return field.get<std::string>();
  }
};

/// The text of a label, as a field of TSV or CSV would have it: a string as it is, 3 of 3 and of 3.0, true or false.
/// None of other values.
std::optional<std::string> json_label(const json& value) {
  constexpr double exact = 9007199254740992;  // 2^53: up to here every whole number is exactly a double
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer() || value.is_boolean()) return value.dump();
  const double number = value.is_number_float() ? value.get<double>() : 0.5;
  if (std::floor(number) != number || std::abs(number) > exact) return std::nullopt;
  return std::to_string(static_cast<int64_t>(number));
}

/// The text of a label; `what`: where it is in the row, for errors.
std::string label_of(const JsonRow& row, const json& value, const std::string& what) {
  if (auto label = json_label(value)) return *std::move(label);
  throw Error(fmt::format("{}: {} must be a string, a whole number, true or false, found {}", row.place, what,
                          json_excerpt(value)));
}

/// Sets the labels of a row from its flags, from a list, or from one value as in a field of TSV or CSV.
void add_labels(LabelledText& to, const JsonRow& row) {
  const ColumnChoice& choice = row.choice;
  const bool several = !choice.label_separator.empty();
  std::vector<std::string> labels;
  if (!choice.labels) return;
  if (!choice.label_columns.empty()) {
    for (const std::string& key : choice.label_columns)
      if (flag_of(json_label(row.value(key)).value_or(json_excerpt(row.value(key))), key, row.place))
        labels.push_back(key);
    return set_labels(to, std::move(labels), choice, row.place);
  }
  const std::string key = choice.label.value_or(several ? "labels" : "label");
  const json& field = row.value(key);
  if (field.is_null() && !several) return set_label(to, "", choice, row.place);  // as an empty field
  if (!field.is_array() || choice.targets)
    return set_label(to, label_of(row, field, fmt::format("'{}'", key)), choice, row.place);
  for (const json& label : field)
    labels.push_back(label_of(row, label, fmt::format("label {} in '{}'", labels.size() + 1, key)));
  if (several || labels.size() != 1) return set_labels(to, std::move(labels), choice, row.place);
  set_label(to, labels.front(), choice, row.place);
}

LabelledText read_object(std::string_view line, const JsonRule& rule, const std::string& place,
                         const ColumnChoice& choice) {
  const std::vector<std::string> keys = choice.text.empty() ? std::vector<std::string>{"text"} : choice.text;
  const json object = parse_json(line, rule);
  if (!object.is_object())
    throw Error(fmt::format("{}: every line must be a JSON object such as {{\"label\": 1, \"text\": \"...\"}}", place));
  LabelledText row;
  const JsonRow read{object, place, choice};
  add_labels(row, read);
  const auto plain = [&](const std::string& key) {
    const json& value = read.value(key);
    return value.is_string() ? value.get<std::string>() : value.is_null() ? "" : json_text(value);
  };
  if (choice.labels && !choice.weight.empty()) row.weight = weight_of(plain(choice.weight), choice.weight, place);
  if (choice.labels && !choice.group.empty()) row.group = plain(choice.group);
  for (size_t i = 0; i < keys.size(); ++i) row.add_column(read.text(keys[i]), i == 0);
  return row;
}

constexpr std::string_view json_blanks = " \t\r\n";

/// Throws Error where the first object goes over several lines: each of them would be a bad row.
void refuse_object_over_lines(const TableInput& input) {
  Line line, next;
  Lines lines(input.content);
  std::string_view text;
  while (text.empty() && lines.next(line)) text = trimmed(line.text, json_blanks);
  if (!starts_with(text, "{") || ends_with(text, "}") || !lines.next(next)) return;
  throw Error(
      fmt::format("{0}:{1}: an object that goes over several lines; a file has one object in each line, or is one "
                  "array of objects: jq -c . {0} > NEW.jsonl, or, where the rows are a list within it, "
                  "jq -c '.NAME[]' {0} > NEW.jsonl",
                  input.file, line.number));
}

bool is_array(std::string_view content) {
  const size_t first = content.find_first_not_of(json_blanks);
  return first != std::string_view::npos && content[first] == '[';
}

/// The texts of the elements of an array, not parsed.
class ArrayElements {
 public:
  explicit ArrayElements(std::string_view content) : content_(content) {
    while (content_[at_] != '[') pass();
    pass();
  }

  /// False at the end, and at an element that the file's end cuts off.
  bool next(Line& element) {
    pass_blanks();
    if (at_ >= content_.size() || content_[at_] == ']') return false;
    const size_t begin = at_;
    line_ = element.number = here_;
    column_ = column();
    ++elements_;
    int depth = 0;
    bool in_string = false;
    for (; at_ < content_.size(); pass()) {
      const char c = content_[at_];
      if (in_string) {
        if (c == '\\') pass();
        in_string = c != '"';
      } else if (c == '"') {
        in_string = true;
      } else if (c == '{' || c == '[') {
        ++depth;
      } else if ((c == ',' || c == ']') && depth == 0) {
        break;
      } else if (c == '}' || c == ']') {
        --depth;
      }
    }
    at_ = std::min(at_, content_.size());
    cut_ = depth > 0 || in_string;
    if (cut_) return false;
    element.text = content_.substr(begin, at_ - begin);
    if (at_ < content_.size() && content_[at_] == ',') pass();
    return true;
  }
  /// Where the last element begins in its line.
  int64_t element_column() const { return column_; }

  /// After the last one: whether the array was closed.
  bool closed() const { return at_ < content_.size(); }
  std::string not_closed(const std::string& file) const {
    if (cut_)
      return fmt::format(
          "{}:{}:{}: element {} of the array begins here, and the file ends at {}:{} before it does: the "
          "file was cut when it was written or copied, or a quote or bracket is missing; get all of it, "
          "or mend the element",
          file, line_, column_, elements_, here_, column());
    return fmt::format(
        "{}:{}:{}: the file ends here, after {} elements, without the ] of its array: it was cut when "
        "it was written or copied; get all of it, or write the ] if nothing else is missing",
        file, here_, column(), elements_);
  }
  /// Throws Error where anything follows the array.
  void refuse_more(const std::string& file) {
    pass();
    pass_blanks();
    if (at_ < content_.size())
      throw Error(
          fmt::format("{0}:{1}:{2}: the array ends before this; a file is one array, or has an object in each "
                      "line: jq -c '.[]' {0} > NEW.jsonl",
                      file, here_, column()));
  }

 private:
  void pass() {
    if (at_ < content_.size() && content_[at_] == '\n') {
      ++here_;
      line_begin_ = at_ + 1;
    }
    ++at_;
  }
  int64_t column() const { return static_cast<int64_t>(at_ - line_begin_) + 1; }
  void pass_blanks() {
    while (at_ < content_.size() && json_blanks.find(content_[at_]) != std::string_view::npos) pass();
  }

  std::string_view content_;
  size_t at_ = 0, line_begin_ = 0;
  int64_t here_ = 1;               // the line of at_
  int64_t line_ = 1, column_ = 1;  // where the last element begins
  int64_t elements_ = 0;
  bool cut_ = false;
};

/// Rows of a file that is one array of objects.
void read_array(const TableInput& input) {
  ArrayElements elements(input.content);
  for (Line element; elements.next(element);)
    input.bad.guard([&] {
      const std::string place = fmt::format("{}:{}", input.file, element.number);
      JsonRule rule{input.file, element.number};
      rule.column = elements.element_column();
      LabelledText row = read_object(element.text, rule, place, input.choice);
      row.line = element.number;
      input.take(std::move(row), static_cast<size_t>(element.text.end() - input.content.begin()));
    });
  if (!elements.closed())
    input.bad.add(elements.not_closed(input.file));
  else
    elements.refuse_more(input.file);
}

/// The keys of an object, in the order of its text.
std::vector<std::string> keys_of(const json& object, std::string_view text) {
  std::vector<std::pair<size_t, std::string>> places;
  for (const auto& item : object.items()) places.emplace_back(text.find(json(item.key()).dump()), item.key());
  std::sort(places.begin(), places.end());
  std::vector<std::string> keys;
  for (auto& [place, key] : places) keys.push_back(std::move(key));
  return keys;
}

/// The keys of the first object, then the values of up to `count` objects under these keys, lists and the like as JSON
/// writes them. An object that cannot be read ends them: it may be cut where a sample of the file ends. None if that is
/// the first one.
template <class Objects>
std::vector<std::vector<std::string>> first_objects(Objects objects, size_t count) {
  std::vector<std::vector<std::string>> rows;
  for (Line line; rows.size() <= count && objects.next(line);) {
    if (line.text.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const json object = try_parse_json(line.text);
    if (!object.is_object()) return rows.size() > 1 ? rows : decltype(rows){};
    if (rows.empty()) rows.push_back(keys_of(object, line.text));
    std::vector<std::string> values;
    for (const std::string& key : rows.front()) {
      const auto found = object.find(key);
      values.push_back(found == object.end() ? "" : found->is_string() ? found->get<std::string>() : json_text(*found));
    }
    rows.push_back(std::move(values));
  }
  return rows;
}

/// Every line of a row keeps its bytes up to its last brace, so that numbers and the order of keys stay as they were;
/// other lines stay as they are.
std::string objects_with_fields(const TableOutput& output) {
  if (is_array(output.content))
    throw Error(
        fmt::format("--output: {} is one array; an object per line can have new fields: jq -c '.[]' {} > NEW.jsonl",
                    output.file, output.file));
  const char* const line_end = line_end_of(output.content);
  std::string written;
  size_t next = 0;
  Lines lines(output.content);
  for (Line line; lines.next(line); written += line_end) {
    const size_t end = line.text.find_last_of('}');
    if (next == output.lines.size() || output.lines[next] != line.number) {
      written += line.text;
      continue;
    }
    const json object = try_parse_json(line.text);
    written += line.text.substr(0, end);
    bool first = object.empty();
    for (const AddedField& field : output.rows.at(next++)) {
      if (object.contains(field.name))
        throw Error(fmt::format("--output: {} already has a column '{}'; rename it", output.file, field.name));
      written += fmt::format(
          "{}\"{}\": {}", std::exchange(first, false) ? "" : ", ", field.name,
          field.number ? field.value : json(field.value).dump(-1, ' ', false, json::error_handler_t::replace));
    }
    written += '}';
  }
  return written;
}

/// Throws Error where a key is chosen as label and as text.
void refuse_label_as_text(const TableInput& input) {
  const ColumnChoice& choice = input.choice;
  if (!choice.labels) return;
  const bool several = !choice.label_separator.empty();
  const std::vector<std::string> labels = choice.label_columns.empty()
                                              ? std::vector{choice.label.value_or(several ? "labels" : "label")}
                                              : choice.label_columns;
  for (const std::string& label : labels)
    if (std::find(choice.text.begin(), choice.text.end(), label) != choice.text.end())
      throw choice.label_is_text(input.file, fmt::format("the key '{}'", label));
}

}  // namespace

TableFormat jsonl_format() {
  TableFormat format{"jsonl", [](const TableInput& input) {
                       TableInput unchecked = input;
                       unchecked.utf8 = false;  // the parser refuses what is not UTF-8
                       refuse_label_as_text(input);
                       if (is_array(input.content)) return read_array(unchecked);
                       refuse_object_over_lines(input);
                       return read_lines(unchecked, [&](const Line& line, const std::string& place) {
                         return read_object(line.text, {input.file, line.number}, place, input.choice);
                       });
                     }};
  format.endings = {".jsonl", ".ndjson", ".json"};
  format.fields = TableFormat::Fields::keys;
  format.first_rows = [](std::string_view content, const std::string&, const Dialect&, size_t count) {
    return is_array(content) ? first_objects(ArrayElements(content), count) : first_objects(Lines(content), count);
  };
  format.with_fields = objects_with_fields;
  return format;
}

}  // namespace capstan
