#include "run/predictions/text_input.hpp"

#include <filesystem>
#include <optional>

#include "core/base/error.hpp"
#include "core/strings/affixes.hpp"
#include "core/strings/utf8.hpp"
#include "data/files/text_file.hpp"

namespace capstan {
namespace {

/// None: lines.
std::optional<TableFormat> format_named(const TextInputOptions& options, const SourceConfig& data) {
  if (options.format == "tsv") return TableFormat::tsv;
  if (options.format == "csv") return TableFormat::csv;
  if (options.format == "jsonl") return TableFormat::jsonl;
  if (options.format == "fasttext") return TableFormat::fasttext;
  if (options.format == "lines") return std::nullopt;
  const std::string name = unpacked_name(options.file);
  if (ends_with(name, ".csv")) return TableFormat::csv;
  if (ends_with(name, ".jsonl") || ends_with(name, ".ndjson")) return TableFormat::jsonl;
  if (options.labels && ends_with(name, ".tsv")) return TableFormat::tsv;
  const auto* const labelled = std::get_if<LabelledSourceConfig>(&data);
  if (options.labels && labelled != nullptr && labelled->format == TableFormat::fasttext) return TableFormat::fasttext;
  return std::nullopt;
}

/// The columns of a table of unknown texts.
ColumnChoice columns_of(const SourceConfig& data, TableFormat format, bool labels) {
  if (const auto* const pairs = std::get_if<PairSourceConfig>(&data)) return pair_columns(*pairs, format, labels);
  ColumnChoice columns;
  columns.labels = labels;
  if (const auto* const labelled = std::get_if<LabelledSourceConfig>(&data)) {
    columns.header = labelled->header;
    columns.label = labelled->label_column;
    columns.text = labelled->text_columns;
    if (labelled->multi_label) columns.label_separator = labelled->label_separator;
  }
  return columns;
}

std::vector<std::string> tab_separated(const std::string& text) {
  std::vector<std::string> columns;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\t', at), text.size());
    columns.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return columns;
}

TextReader open_input(const TextInputOptions& options, bool table) {
  std::error_code unknown;
  if (options.file != "-" && !std::filesystem::exists(options.file, unknown))
    throw Error(fmt::format("{}: no such file; to give a text itself: echo TEXT | {}", options.file, options.command));
  return TextReader::input(options.file, table ? usual_max_file_mb : any_file_mb);
}

}  // namespace

TextInput::TextInput(const TextInputOptions& options, const SourceConfig& data)
    : options_(options),
      data_(data),
      format_(format_named(options, data)),
      in_(open_input(options, format_.has_value())),
      columns_(facts_of(data).text.columns) {
  if (!format_ && options.labels)
    throw ConfigError(
        fmt::format("--errors: {} is read as lines, which have no labels; give a table, and its format with "
                    "--input tsv, csv, jsonl or fasttext",
                    in_.name()));
  if (format_) read_rows(*format_);
}

void TextInput::read_rows(TableFormat format) {
  const std::string content = in_.read_rest();
  BadRows bad(OnError::stop);
  for (LabelledText& row :
       read_table(content, in_.name(), format, columns_of(data_, format, options_.labels), bad, options_.utf8)) {
    InputText text;
    if (columns_ > 1)
      for (const std::string_view column : row.columns()) text.columns.emplace_back(column);
    text.text = std::move(row.text);
    if (columns_ == 1) text.columns = {text.text};
    text.label = std::move(row.label);
    text.labels = std::move(row.labels);
    text.place = fmt::format("{}:{}", in_.name(), row.line);
    text.line = row.line;
    rows_.push_back(std::move(text));
  }
  bad.check();
}

bool TextInput::next(InputText& text) {
  if (format_) {
    if (at_ == rows_.size()) return false;
    text = std::move(rows_[at_++]);
    return true;
  }
  text = InputText();
  if (!in_.read_line(text.text)) return false;
  if (!text.text.empty() && text.text.back() == '\r') text.text.pop_back();
  text.line = ++line_;
  text.place = fmt::format("{}:{}", in_.name(), line_);
  text.columns = columns_ > 1 ? tab_separated(text.text) : std::vector<std::string>{text.text};
  if (text.columns.size() != columns_)
    throw Error(
        fmt::format("{}: found {} texts, but the model was trained with {} (data.text_columns): separate "
                    "them by a tab",
                    text.place, text.columns.size(), columns_));
  if (options_.utf8) check_utf8(text.text, in_.name(), line_);
  return true;
}

}  // namespace capstan
