#include "data/labelled/found_columns.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/error.hpp"
#include "core/strings/affixes.hpp"
#include "core/strings/integer.hpp"
#include "core/strings/join.hpp"
#include "data/files/table_head.hpp"
#include "data/labelled/column_sample.hpp"

namespace capstan {
namespace {

using Rows = std::vector<std::vector<std::string>>;

bool is_name(const std::string& column) { return !parse_integer(column); }

bool names_column(const std::vector<std::string>& header, const std::string& column) {
  return is_name(column) && std::find(header.begin(), header.end(), column) != header.end();
}

/// As set, or true for a first row with a name that the configuration uses; unset: as the sample finds.
std::optional<bool> header_of(const LabelledSourceConfig& config, const Rows& rows) {
  std::vector<std::string> columns = config.text_columns;
  if (config.label_column) columns.push_back(*config.label_column);
  if (config.header || rows.empty()) return config.header;
  const bool named = std::any_of(columns.begin(), columns.end(),
                                 [&](const std::string& column) { return names_column(rows.front(), column); });
  return named ? std::optional(true) : std::nullopt;
}

/// Forgets the names of the training if a table has no header. True where that is a guess.
bool forget_names(LabelledSourceConfig& config, const Rows& rows) {
  LabelledSourceConfig unset = config;
  unset.header.reset();
  const bool by_names = (config.label_column && is_name(*config.label_column)) ||
                        std::any_of(config.text_columns.begin(), config.text_columns.end(), is_name);
  if (!by_names || !config.header || header_of(unset, rows) || config.text_columns.size() > 1) return false;
  if (ColumnSample(rows, std::nullopt).begins_with_names()) return false;
  config.header = false;
  config.label_column.reset();
  config.text_columns.clear();
  return true;
}

const char* name_of(char delimiter) { return delimiter == ';' ? "semicolons" : delimiter == '|' ? "bars" : "tabs"; }

std::string delimiter_remark(std::string_view content, TableFormat format) {
  const char delimiter = format == TableFormat::csv ? csv_delimiter(content) : ',';
  return delimiter == ',' ? "" : fmt::format("columns are separated by {}", name_of(delimiter));
}

/// The columns of a table of new texts.
class NewTable {
 public:
  NewTable(const LabelledSourceConfig& config, const ClassNames* classes, Rows rows)
      : config_(config), classes_(classes), sample_(rows, header_of(config, rows)), rows_(std::move(rows)) {
    for (const bool numbers : {false, true})  // numbers of classes are looked for where no column has their names
      for (size_t c = 0; c < sample_.columns() && sample_.columns() > 1 && classes != nullptr; ++c)
        if ((!numbers || labels_.empty()) && holds_classes(c, numbers)) labels_.push_back(c);
  }

  const ColumnSample& sample() const { return sample_; }
  /// Is a field of the first row the name of a class?
  bool begins_with_class() const {
    return classes_ != nullptr && !rows_.empty() &&
           std::any_of(rows_.front().begin(), rows_.front().end(), [&](const std::string& field) {
             const auto number = classes_->find(field);
             return number && classes_->names()[static_cast<size_t>(*number)] == field;
           });
  }

  /// `needed`: where nothing is found, what the training had.
  std::optional<size_t> label(bool needed) const {
    const auto trained = sample_.index_of(config_.label_column.value_or("1"));
    if (config_.label_column && !parse_integer(*config_.label_column) && sample_.begins_with_names()) return trained;
    if (trained && has_labels(*trained)) return trained;
    if (labels_.size() == 1) return labels_.front();
    return needed ? trained : std::nullopt;
  }

  /// The columns of the texts as ColumnChoice names them; empty: the last column.
  std::vector<std::string> texts(const std::optional<size_t>& label, const std::string& file) const {
    for (const std::string& column : config_.text_columns)
      if (const auto at = sample_.index_of(column); at && parse_integer(column) && (at == label || has_labels(*at)))
        throw Error(
            fmt::format("{}: column {} has labels, but the run reads its texts there; name the columns of the "
                        "texts with --text-column or data.text_columns",
                        file, column));
    if (!config_.text_columns.empty()) return config_.text_columns;
    std::vector<bool> any(sample_.columns()), no_labels(any);
    for (size_t c = 0; c < any.size(); ++c) {
      any[c] = c != label || any.size() == 1;
      no_labels[c] = any[c] && !has_labels(c);
    }
    auto text = sample_.text_or_last(no_labels);
    if (!text) text = sample_.text_or_last(any);
    if (!text || *text + 1 == sample_.columns()) return {};
    return {std::to_string(*text + 1)};
  }

 private:
  bool has_labels(size_t column) const { return std::find(labels_.begin(), labels_.end(), column) != labels_.end(); }

  /// Are nearly all values classes: their names or, with `numbers`, also their numbers?
  bool holds_classes(size_t column, bool numbers) const {
    constexpr size_t others = 20;  // 1 of 20 may be no class
    size_t known = 0, all = 0;
    for (size_t r = sample_.begins_with_names() ? 1 : 0; r < rows_.size(); ++r) {
      if (column >= rows_[r].size()) continue;
      const std::string& value = rows_[r][column];
      for (const std::string& label : config_.multi_label
                                          ? split_labels(value, config_.label_separator)
                                          : std::vector<std::string>{std::string(trimmed(value, " \t\r"))}) {
        const auto number = classes_->find(label);
        all += label.empty() ? 0 : 1;
        known += number && (numbers || classes_->names()[static_cast<size_t>(*number)] == label) ? 1 : 0;
      }
    }
    return known > 0 && others * (all - known) <= all;
  }

  const LabelledSourceConfig& config_;
  const ClassNames* classes_;
  ColumnSample sample_;
  Rows rows_;
  std::vector<size_t> labels_ = {};  // columns of which nearly all values are classes
};

}  // namespace

std::string find_columns(LabelledSourceConfig& config) {
  const TableHead table = head_of_tables(config.train, config.format, ColumnSample::rows_read);
  const std::string remark = delimiter_remark(table.content, table.format);
  if (table.rows.empty()) return "";
  const bool keys = table.format == TableFormat::jsonl;
  const ColumnSample sample(table.rows, keys ? true : header_of(config, table.rows));
  const bool header = !keys && sample.begins_with_names() && !config.header;
  std::string found;
  const auto add = [&](const std::string& key, const std::string& value) {
    found += fmt::format(" data.{}={}", key, value);
  };
  if (header) {
    config.header = true;
    add("header", "true");
  }
  const auto known = [&](const char* key) { return keys ? sample.index_of(key) : std::nullopt; };
  auto label =
      config.label_column ? sample.index_of(*config.label_column) : known(config.multi_label ? "labels" : "label");
  if (!label && !config.label_column) {
    label = keys ? sample.likely_label() : sample.label_or_first(!config.multi_label);
    if (label && (header || keys || *label > 0)) add("label_column", *(config.label_column = sample.name_of(*label)));
  }
  if (label && !config.multi_label && sample.has_lists(*label)) {
    if (keys && !config.label_column) config.label_column = sample.name_of(*label);  // "labels" without it
    config.multi_label = true;
    add("multi_label", "true");
  }
  std::vector<bool> allowed(sample.columns(), config.text_columns.empty() && label && !known("text"));
  if (label) allowed[*label] = false;
  auto text = sample.text_or_last(allowed);
  if (keys && text) text = sample.likely_text(*label);
  if (text && (header || keys || *text + 1 < sample.columns())) {
    config.text_columns = {sample.name_of(*text)};
    add("text_columns", "[" + config.text_columns.front() + "]");
  }
  if (!found.empty() && config.text_columns.empty() && text && !keys)
    found += fmt::format(" (the text is column {})", *text + 1);
  if (!found.empty()) found = (remark.empty() ? "read with" : "; read with") + found;
  return remark.empty() && found.empty() ? "" : fmt::format("data: {}: {}{}", table.file, remark, found);
}

FoundColumns columns_of_table(LabelledSourceConfig config, const std::vector<std::string>& texts,
                              std::string_view content, const std::string& file, TableFormat format,
                              const ClassNames* classes, bool labels) {
  Rows rows = first_rows(content, file, format, ColumnSample::rows_read);
  const bool doubtful = config.header == std::optional(false) && std::none_of(texts.begin(), texts.end(), is_name) &&
                        ColumnSample(rows, std::nullopt).begins_with_names();
  std::vector<std::string> names = config.text_columns;
  const bool guessed = forget_names(config, rows) && texts.empty() && !rows.empty();
  if (!texts.empty()) config.text_columns = texts;
  if (std::any_of(texts.begin(), texts.end(), is_name)) config.header = true;
  const NewTable table(config, classes, std::move(rows));
  const ColumnSample& sample = table.sample();
  if (guessed && !table.begins_with_class())
    throw Error(
        fmt::format("{}: its first row ({}) has no column '{}', which the run reads; name the column of the "
                    "texts with --text-column: by its name, or by a number (1 is the first) if the first row "
                    "has no names",
                    file, join_first(sample.first_row()), join_first(names, "', '")));
  const auto label = table.label(labels);
  FoundColumns found{{sample.begins_with_names(), config.label_column, table.texts(label, file), labels}, ""};
  if (label) found.choice.label = std::to_string(*label + 1);
  if (config.multi_label) found.choice.label_separator = config.label_separator;
  found.choice.text_key = "--text-column";
  constexpr const char* doubt =
      "its first row looks like names but is read as a text: if it has names, --set data.header=true";
  if (format == TableFormat::jsonl || (sample.columns() < 2 && !found.choice.header)) {
    if (doubtful) found.said = fmt::format("{}: {}", file, doubt);
    return found;
  }
  const auto shown = [&](size_t c) {
    return fmt::format("column {}{}", c + 1, found.choice.header ? " (" + sample.first_row()[c] + ")" : "");
  };
  std::vector<std::string> read;
  for (const std::string& column : found.choice.text.empty() ? std::vector<std::string>{"-1"} : found.choice.text)
    if (const auto at = sample.index_of(column)) read.push_back(shown(*at));
  if (read.empty()) return found;  // reading the table says what is missing
  const std::string remark = delimiter_remark(content, format);
  found.said =
      fmt::format("{}: {}{}the text is {}", file, remark, remark.empty() ? "" : "; ", join_first(read, " and "));
  if (label && sample.columns() > 1)
    found.said += fmt::format("; the label, {}, is {}", shown(*label), labels ? "compared" : "left out");
  if (doubtful) found.said += fmt::format("; {}", doubt);
  return found;
}

}  // namespace capstan
