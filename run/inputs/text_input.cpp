#include "run/inputs/text_input.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "core/base/error.hpp"
#include "core/io/log.hpp"
#include "core/strings/affixes.hpp"
#include "core/strings/utf8.hpp"
#include "data/files/file_list.hpp"
#include "data/files/text_file.hpp"
#include "data/labelled/found_columns.hpp"

namespace capstan {
namespace {

/// The tabs in each of the first lines of a file, where all that are not empty have equally many.
std::optional<size_t> tabs_of_lines(const std::string& file) {
  constexpr int lines_read = 20;
  TextReader reader = TextReader::input(file);
  std::optional<size_t> tabs;
  std::string line;
  for (int i = 0; i < lines_read && reader.read_line(line); ++i) {
    if (line.empty() || line == "\r") continue;
    const auto count = static_cast<size_t>(std::count(line.begin(), line.end(), '\t'));
    if (tabs && *tabs != count) return std::nullopt;
    tabs = count;
  }
  return tabs;
}

bool has_tables(const SourceConfig& data) {
  return std::holds_alternative<LabelledSourceConfig>(data) || std::holds_alternative<PairSourceConfig>(data);
}

/// The format that the options or the data name; none for lines.
std::optional<TableFormat> format_named(const TextInputOptions& options, const SourceConfig& data) {
  for (const TableFormat format :
       {TableFormat::tsv, TableFormat::csv, TableFormat::jsonl, TableFormat::fasttext, TableFormat::folders})
    if (options.format == enum_name(format)) return format;
  if (options.format == "lines") return std::nullopt;
  std::error_code unknown;
  if (std::holds_alternative<LabelledSourceConfig>(data) && facts_of(data).text.columns == 1 &&
      std::filesystem::is_directory(options.file, unknown))
    return TableFormat::folders;
  const std::string name = unpacked_name(options.file);
  if (ends_with(name, ".csv")) return TableFormat::csv;
  if (ends_with(name, ".jsonl") || ends_with(name, ".ndjson")) return TableFormat::jsonl;
  const auto* const labelled = std::get_if<LabelledSourceConfig>(&data);
  const bool file = options.file != "-";
  if (labelled != nullptr && labelled->format == TableFormat::fasttext && (file || options.labels))
    return TableFormat::fasttext;
  if (!options.text_columns.empty() || (options.labels && ends_with(name, ".tsv"))) return TableFormat::tsv;
  if (labelled != nullptr && labelled->format == TableFormat::folders && file && !ends_with(name, ".tsv"))
    return TableFormat::folders;
  if (!file || !has_tables(data)) return std::nullopt;
  if (labelled != nullptr && (labelled->format == TableFormat::csv || labelled->format == TableFormat::jsonl))
    return labelled->format;
  // A line of a pair of texts has a tab, too.
  const size_t texts = facts_of(data).text.columns;
  const auto tabs = tabs_of_lines(options.file);
  const bool pairs = texts > 1 && tabs && *tabs + 1 == texts;
  const bool table = ends_with(name, ".tsv") ? !pairs : tabs && *tabs + 1 > texts;
  return table ? std::optional(TableFormat::tsv) : std::nullopt;
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

const TextInputOptions& existing(const TextInputOptions& options) {
  std::error_code unknown;
  if (options.file != "-" && !std::filesystem::exists(options.file, unknown))
    throw Error(fmt::format("{}: no such file; to give a text itself: echo TEXT | {}", options.file, options.command));
  return options;
}

}  // namespace

TextInput::TextInput(const TextInputOptions& options, const SourceConfig& data)
    : options_(existing(options)),
      data_(data),
      format_(format_named(options, data)),
      columns_(facts_of(data).text.columns) {
  if (format_ == TableFormat::folders) {
    read_files();
    return;
  }
  in_.emplace(TextReader::input(options.file, format_ ? usual_max_file_mb : any_file_mb));
  if (!format_ && options.labels)
    throw ConfigError(
        fmt::format("--errors: {} is read as lines, which have no labels; give a table, and its format with "
                    "--input tsv, csv, jsonl or fasttext",
                    in_->name()));
  if (format_) read_rows(*format_);
}

ColumnChoice TextInput::choose_columns(TableFormat format) const {
  if (const auto* const pairs = std::get_if<PairSourceConfig>(&data_)) {
    PairSourceConfig config = *pairs;
    if (!options_.text_columns.empty()) config.source_column = options_.text_columns.front();
    return pair_columns(config, format, options_.labels);
  }
  const auto* const labelled = std::get_if<LabelledSourceConfig>(&data_);
  const LabelledSourceConfig config = labelled != nullptr ? *labelled : LabelledSourceConfig();
  std::optional<ClassNames> classes;
  if (!options_.classes.empty())
    classes = ClassNames::from_list(options_.classes, "the classes of the run", config.first_label);
  const FoundColumns found = columns_of_table(config, options_.text_columns, content_, in_->name(), format,
                                              classes ? &*classes : nullptr, options_.labels);
  if (!found.said.empty()) log_info(found.said);
  return found.choice;
}

void TextInput::read_files() {
  for (const FoundFile& found : list_files({options_.file})) {
    std::string text = read_text_file(found.path);
    if (options_.utf8) check_utf8(text, found.path);
    rows_.emplace_back(std::move(text));
    rows_.back().place = found.path;
    rows_.back().label = std::filesystem::path(found.path).parent_path().filename().string();
    rows_.back().labels = {rows_.back().label};
  }
  log_info(fmt::format("{}: {} file{}, each a text, in the order of their paths", options_.file, rows_.size(),
                       rows_.size() == 1 ? "" : "s"));
}

void TextInput::read_rows(TableFormat format) {
  content_ = in_->read_rest();
  BadRows bad(OnError::stop);
  const ColumnChoice columns = choose_columns(format);
  header_ = columns.header;
  for (LabelledText& row : read_table(content_, in_->name(), format, columns, bad, options_.utf8)) {
    InputText text;
    if (columns_ > 1)
      for (const std::string_view column : row.columns()) text.columns.emplace_back(column);
    text.text = std::move(row.text);
    if (columns_ == 1) text.columns = {text.text};
    text.label = std::move(row.label);
    text.labels = std::move(row.labels);
    text.place = fmt::format("{}:{}", in_->name(), row.line);
    text.line = row.line;
    rows_.push_back(std::move(text));
  }
  bad.check(!rows_.empty());
}

bool TextInput::next(InputText& text) {
  if (format_) {
    if (at_ == rows_.size()) return false;
    text = std::move(rows_[at_++]);
    return true;
  }
  text = InputText();
  if (!in_->read_line(text.text)) return false;
  if (!text.text.empty() && text.text.back() == '\r') text.text.pop_back();
  text.line = ++line_;
  if (line_ == 1) text.text = without_mark(text.text, in_->name());
  text.place = fmt::format("{}:{}", in_->name(), line_);
  text.columns = columns_ > 1 ? tab_separated(text.text) : std::vector<std::string>{text.text};
  if (text.columns.size() != columns_)
    throw Error(
        fmt::format("{}: found {} texts, but the model was trained with {} (data.text_columns): separate "
                    "them by a tab",
                    text.place, text.columns.size(), columns_));
  if (options_.utf8) check_utf8(text.text, in_->name(), line_);
  if (!tab_said_ && columns_ == 1 && has_tables(data_) && text.text.find('\t') != std::string::npos) {
    tab_said_ = true;
    log_info(fmt::format("{}: has a tab, but is read as one text; of a table: --input tsv", text.place));
  }
  return true;
}

void TextInput::check_table(const std::string& output) const {
  if (!format_ || *format_ == TableFormat::fasttext || *format_ == TableFormat::folders)
    throw ConfigError(fmt::format("--output: {} is read as {}; give a table, and its format with --input",
                                  options_.file, format_ == TableFormat::folders ? "texts of a file each" : "lines"));
  if (is_packed_name(output))
    throw ConfigError(fmt::format("--output: {} would not be packed; name it {}", output, unpacked_name(output)));
  for (const char* const ending : {".tsv", ".csv", ".jsonl"})
    if (ending != fmt::format(".{}", enum_name(*format_)) && ends_with(output, ending) &&
        !ends_with(unpacked_name(in_->name()), ending))
      throw ConfigError(fmt::format("--output: {0} is {1}, and so would be {2}; name it .{1}", in_->name(),
                                    enum_name(*format_), output));
}

std::string TextInput::with_fields(const std::vector<std::vector<AddedField>>& added) const {
  return capstan::with_fields(content_, in_->name(), *format_, header_, added);
}

}  // namespace capstan
