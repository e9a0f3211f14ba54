// Splits a field into labels: a list of Python or JSON, or parts between separators. The same rules must hold in every
// format: tests/data/labelled/test_multi_label.cpp and test_tables_people_have.cpp.
#include "data/formats/row_labels.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "core/io/json.hpp"
#include "core/strings/strings.hpp"

namespace capstan {
namespace {

constexpr std::string_view label_blanks = " \t\r\v\f";

/// Takes the string of Python or JSON that `text` begins with from its front, and returns it as JSON writes it, in
/// double quotes.
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

/// Was the text a list in brackets that split_labels() could not read, so that it divided it by the separator instead?
bool is_broken_list(const std::vector<std::string>& labels) {
  if (labels.empty() || labels.front()[0] != '[' || labels.back().empty() || labels.back().back() != ']') return false;
  const char next = labels.front()[1];
  return next == '[' || next == '\'' || next == '"' ||
         (labels.size() > 1 && labels.front().find(']') == std::string::npos);
}

/// Throws Error naming `place` for a list that could not be read and for an empty label.
void check_labels(const std::vector<std::string>& labels, const std::string& place) {
  if (is_broken_list(labels))
    throw Error(
        fmt::format("{}: the labels look like a list, but not as JSON or Python write it: {}; quote each of "
                    "them, with commas in between, as in ['a', 'b']",
                    place, join_first(labels, ", ")));
  const auto empty = std::find(labels.begin(), labels.end(), "");
  if (empty != labels.end())
    throw Error(fmt::format("{}: label {} of {} is empty", place, empty - labels.begin() + 1, labels.size()));
}

/// Keeps each label once, in order; returns true if one was there twice.
bool remove_repeated(std::vector<std::string>& labels) {
  std::set<std::string> seen;
  const auto known = [&](const std::string& label) { return !seen.insert(label).second; };
  const auto end = std::remove_if(labels.begin(), labels.end(), known);
  const bool repeats = end != labels.end();
  labels.erase(end, labels.end());
  return repeats;
}

}  // namespace

std::string_view label_text(std::string_view field) {
  field = trimmed(field, label_blanks);
  const bool quoted = field.size() >= 2 && field.front() == '"' && field.find('"', 1) == field.size() - 1;
  return quoted ? trimmed(field.substr(1, field.size() - 2), label_blanks) : field;
}

std::optional<std::vector<std::string>> listed_labels(std::string_view text) {
  text = trimmed(text, label_blanks);
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
  if (trimmed(text, label_blanks).empty()) return labels;
  const bool by_blanks = trimmed(separator, label_blanks).empty();  // runs of them are one separator
  for (const std::string_view part : split(text, separator))
    if (const std::string_view label = trimmed(part, label_blanks); !label.empty() || !by_blanks)
      labels.emplace_back(label);
  return labels;
}

bool flag_of(std::string_view field, const std::string& column, const std::string& place) {
  const std::string flag = lower_case(label_text(field));
  if (flag == "1" || flag == "1.0" || flag == "true") return true;
  if (flag == "0" || flag == "0.0" || flag == "false") return false;
  throw Error(fmt::format("{}: column '{}' of data.label_columns must be 0 or 1, found '{}'", place, column,
                          field.substr(0, 100)));
}

double weight_of(const std::string& field, const std::string& column, const std::string& place) {
  const std::string text(label_text(field));
  constexpr double max_weight = 1e12;  // as of all numbers of a configuration
  double weight = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), weight);
  if (problem == std::errc() && end == text.data() + text.size() && weight >= 0 && weight <= max_weight) return weight;
  throw Error(fmt::format("{}: column '{}' of data.weight_column must be a number from 0 to 1e12, found '{}'", place,
                          column, text.substr(0, 100)));
}

void set_label(LabelledText& row, const std::string& field, const ColumnChoice& choice, const std::string& place) {
  if (choice.targets) {
    if (field.empty()) throw Error(fmt::format("{}: the target is empty", place));
    row.label = field;
  } else if (choice.label_separator.empty()) {
    const auto listed = listed_labels(field);
    const bool one = listed && listed->size() == 1;
    set_labels(row, {one ? listed->front() : std::string(trimmed(field, label_blanks))}, choice, place);
  } else {
    set_labels(row, split_labels(field, choice.label_separator), choice, place);
  }
}

void set_labels(LabelledText& row, std::vector<std::string> labels, const ColumnChoice& choice,
                const std::string& place) {
  if (!choice.label_separator.empty()) {
    check_labels(labels, place);
    remove_repeated(labels);
    row.labels = std::move(labels);
    return;
  }
  if (labels.size() != 1)
    throw Error(
        fmt::format("{}: found {} labels instead of one; for any number of labels per text, set "
                    "data.multi_label: true",
                    place, labels.size()));
  row.label = std::move(labels.front());
  if (row.label.empty() && !choice.empty_labels)
    throw Error(fmt::format("{}: the label is empty{}", place,
                            choice.targets ? "" : " (of texts that may have none or several: data.multi_label=true)"));
}

}  // namespace capstan
