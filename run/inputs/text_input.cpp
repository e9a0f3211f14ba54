// What a file is: its --input, else its ending, else the format of the run's data, else the tabs of its first lines.
// Standard input has no name, so that its first line decides. What is logged says how a file was taken and how to ask
// for another way. tests/cli/inputs/test_inputs.cpp.
#include "run/inputs/text_input.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "core/base/error.hpp"
#include "core/io/log.hpp"
#include "core/strings/strings.hpp"
#include "core/strings/utf8.hpp"
#include "data/files/file_list.hpp"
#include "data/files/text_file.hpp"
#include "data/formats/table_columns.hpp"
#include "data/labelled/column_names.hpp"
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

/// Is the input a folder in which each file is a text of one column?
bool are_files(const TextInputOptions& options, const SourceConfig& data) {
  if (options.format != format_by_name) return options.format == format_of_folders;
  const auto* const labelled = std::get_if<LabelledSourceConfig>(&data);
  if (labelled == nullptr || !options.text_columns.empty()) return false;
  std::error_code unknown;
  if (facts_of(data).text.columns == 1 && std::filesystem::is_directory(options.file, unknown)) return true;
  return labelled->format == format_of_folders && options.file != "-" && format_by_ending(options.file) == nullptr;
}

/// The format of a table that the options or the data name; null for lines.
const TableFormat* table_format(const TextInputOptions& options, const SourceConfig& data) {
  if (options.format != format_by_name) return format_named(options.format);
  const TableFormat* const tsv = format_named("tsv");
  const TableFormat* const by_ending = format_by_ending(options.file);
  if (by_ending != nullptr && by_ending != tsv) return by_ending;
  const auto* const labelled = std::get_if<LabelledSourceConfig>(&data);
  const bool file = options.file != "-";
  const TableFormat* const trained = labelled != nullptr ? format_named(labelled->table_format()) : nullptr;
  const bool lines = trained != nullptr && trained->fields == TableFormat::Fields::none;
  if (lines && (file || options.labels)) return trained;
  if (!options.text_columns.empty() || (options.labels && by_ending == tsv)) return tsv;
  if (!file || !has_tables(data)) return nullptr;
  if (trained != nullptr && trained != tsv) return trained;
  // Lines of several texts have tabs between them without being a table with labels: the number of tabs decides.
  const size_t texts = facts_of(data).text.columns;
  const auto tabs = tabs_of_lines(options.file);
  const bool pairs = texts > 1 && tabs && *tabs + 1 == texts;
  const bool table = by_ending == tsv ? !pairs : tabs && *tabs + 1 > texts;
  return table ? tsv : nullptr;
}

/// The names or keys of the texts of the run's data; empty where they are numbers.
std::vector<std::string> text_names(const SourceConfig& data, const TableFormat& format) {
  std::vector<std::string> names;
  if (const auto* const pairs = std::get_if<PairSourceConfig>(&data)) names = pair_columns(*pairs, format).text;
  if (const auto* const labelled = std::get_if<LabelledSourceConfig>(&data)) names = labelled->text_columns;
  if (names.empty() && format.fields == TableFormat::Fields::keys) names = {"text"};
  const bool numbers =
      std::any_of(names.begin(), names.end(), [](const std::string& name) { return parse_integer(name).has_value(); });
  return numbers ? std::vector<std::string>() : names;
}

/// The fields of a line that may be the first of a table.
std::vector<std::string> fields_of(const std::string& line, const TableFormat& format) {
  // The line is given twice, because one row alone proves no unusual delimiter.
  const auto rows = first_rows(line + '\n' + line, "stdin", format, 1);
  return rows.empty() ? std::vector<std::string>() : column_names(rows.front());
}

/// Does a table begin with this line: does it have the names or keys of the run's texts, or a label beside the text?
bool begins_table(const std::string& line, const SourceConfig& data, const TableFormat& format) {
  if (format.fields == TableFormat::Fields::none) {
    BadRows bad(OnError::skip);
    ColumnChoice columns;
    columns.label_separator = LabelledSourceConfig::default_label_separator;
    const auto rows = read_table(line, "stdin", format, columns, bad);
    return rows.size() == 1 && !rows.front().labels.empty();
  }
  const std::vector<std::string> wanted = text_names(data, format);
  const std::vector<std::string> names = fields_of(line, format);
  if (wanted.empty() || names.empty()) return false;
  const bool has_all = std::all_of(wanted.begin(), wanted.end(), [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  });
  return has_all && (format.fields == TableFormat::Fields::keys || names.size() > wanted.size());
}

/// The format of a table of the run's data that begins with this line; null for a line of text.
const TableFormat* piped_format(const std::string& line, const SourceConfig& data) {
  const auto* const labelled = std::get_if<LabelledSourceConfig>(&data);
  for (const TableFormat& format : table_formats()) {
    const bool trained = labelled != nullptr && labelled->format == format.name;
    if ((trained || format.fields != TableFormat::Fields::none) && begins_table(line, data, format)) return &format;
  }
  return nullptr;
}

/// The format of which a line, which is read as a text, may be a row: a field is a class of the run, or all fields are
/// names that columns usually have, or they are the names of the run's texts. Null where nothing suggests a table.
const TableFormat* doubtful_format(const std::string& line, const SourceConfig& data,
                                   const std::vector<std::string>& classes) {
  for (const TableFormat& format : table_formats()) {
    if (format.fields != TableFormat::Fields::columns) continue;
    const std::vector<std::string> fields = fields_of(line, format);
    const bool has_class =
        fields.size() > 1 && std::any_of(fields.begin(), fields.end(), [&](const std::string& field) {
          return std::find(classes.begin(), classes.end(), field) != classes.end();
        });
    const bool names = fields.size() > 1 && std::all_of(fields.begin(), fields.end(), [](const std::string& field) {
                         return ColumnName(field).usual;
                       });
    if (has_class || names || (!fields.empty() && fields == text_names(data, format))) return &format;
  }
  return nullptr;
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
    : options_(existing(options)), data_(data), columns_(facts_of(data).text.columns) {
  if (are_files(options, data)) {
    read_files();
    return;
  }
  format_ = table_format(options, data);
  in_.emplace(TextReader::input(options.file, format_ != nullptr ? max_file_mb : any_file_mb));
  undecided_ = format_ == nullptr && options.format == format_by_name && has_tables(data);
  if (options.labels) read_first_line();
  if (format_ == nullptr && options.labels)
    throw ConfigError(fmt::format(
        "--errors: {} is read as lines, which have no labels; give a table, and the name of its format with "
        "--input",
        in_->name()));
  if (format_ != nullptr && !rows_given_) read_rows();
}

ColumnChoice TextInput::choose_columns() const {
  if (const auto* const pairs = std::get_if<PairSourceConfig>(&data_)) {
    PairSourceConfig config = *pairs;
    if (!options_.text_columns.empty()) config.source_column = options_.text_columns.front();
    return pair_columns(config, *format_, options_.labels);
  }
  const auto* const labelled = std::get_if<LabelledSourceConfig>(&data_);
  const LabelledSourceConfig config = labelled != nullptr ? *labelled : LabelledSourceConfig();
  std::optional<ClassNames> classes;
  if (!options_.classes.empty()) classes = ClassNames::from_list(options_.classes, "the classes of the run");
  const FoundColumns columns = columns_of_table(config, options_.text_columns, content_, in_->name(), *format_,
                                                classes ? &*classes : nullptr, options_.labels);
  if (!columns.said.empty()) log_info(columns.said);
  return columns.choice;
}

void TextInput::read_files() {
  const std::vector<FoundFile> files = list_files({options_.file});
  const auto in_class = [&](const FoundFile& file) {
    const std::string folder = file.name.substr(0, file.name.find('/'));
    return folder != file.name &&
           std::find(options_.classes.begin(), options_.classes.end(), folder) != options_.classes.end();
  };
  const bool class_folders = std::any_of(files.begin(), files.end(), in_class);
  size_t left_out = 0;
  for (const FoundFile& entry : files) {
    // Beside the folders of classes, there are lists of addresses and counts of words in the original IMDB.
    if (class_folders && (options_.labels ? !in_class(entry) : entry.name.find('/') == std::string::npos)) {
      ++left_out;
      continue;
    }
    std::string text = read_text_file(entry.path);
    check_is_text(text, entry.path);
    if (options_.utf8) check_utf8(text, entry.path);
    rows_.emplace_back(std::move(text));
    rows_.back().place = entry.path;
    rows_.back().label = std::filesystem::path(entry.path).parent_path().filename().string();
    rows_.back().labels = {rows_.back().label};
  }
  rows_given_ = true;
  log_info(fmt::format("{}: {} file{}, each a text, in the order of their paths{}", options_.file, rows_.size(),
                       rows_.size() == 1 ? "" : "s",
                       left_out > 0 ? fmt::format("; left out {} beside the folders of classes", left_out) : ""));
}

/// Decides what standard input, or a file whose name does not say it, is.
void TextInput::read_first_line() {
  if (!std::exchange(undecided_, false)) return;
  std::string line;
  if (!in_->read_line(line)) return;
  const std::string text(without_mark(line, in_->name()));
  format_ = piped_format(text, data_);
  if (format_ == nullptr) {
    const TableFormat* const doubtful = doubtful_format(text, data_, options_.classes);
    if (doubtful != nullptr)
      log_warning(
          fmt::format("{}:1: looks like the first line of a table, but is read as a text; of a table: --input {}, with "
                      "--text-column NAME if the column of the texts has another name than in training",
                      in_->name(), doubtful->name));
    tab_said_ = doubtful != nullptr;
    first_line_ = std::move(line);
    return;
  }
  log_info(fmt::format("{}: begins as the data of the run and is read as {}; for texts in lines: --input lines",
                       in_->name(), format_->name));
  content_ = line + '\n';
  read_rows();
}

void TextInput::read_rows() {
  content_ += in_->read_rest();
  rows_given_ = true;
  BadRows bad(OnError::stop);
  const ColumnChoice columns = choose_columns();
  header_ = columns.header;
  dialect_ = columns.dialect;
  for (LabelledText& row : read_table(content_, in_->name(), *format_, columns, bad, options_.utf8)) {
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
  read_first_line();
  if (rows_given_) {
    if (at_ == rows_.size()) return false;
    text = std::move(rows_[at_++]);
    return true;
  }
  text = InputText();
  if (first_line_)
    text.text = *std::exchange(first_line_, std::nullopt);
  else if (!in_->read_line(text.text))
    return false;
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

void TextInput::check_table(const std::string& output) {
  read_first_line();
  if (format_ != nullptr && format_->with_fields == nullptr)
    throw ConfigError(fmt::format("--output: {} is read as {}, which has no columns to add to; give tsv, csv or jsonl",
                                  options_.file, format_->name));
  if (format_ == nullptr)
    throw ConfigError(fmt::format("--output: {} is read as {}; give a table, and its format with --input",
                                  options_.file, in_ ? "lines" : "texts of a file each"));
  if (is_packed_name(output))
    throw ConfigError(fmt::format("--output: {} would not be packed; name it {}", output, unpacked_name(output)));
  const TableFormat* const named = format_by_ending(output);
  if (named != nullptr && named != format_ && format_by_ending(in_->name()) != named)
    throw ConfigError(
        fmt::format("--output: {0} is {1}, and so would be {2}; name it .{1}", in_->name(), format_->name, output));
}

std::string TextInput::with_fields(const std::vector<AddedField>& columns,
                                   const std::vector<std::vector<AddedField>>& added) const {
  return capstan::with_fields(content_, *format_, in_->name(), header_, columns, added, dialect_);
}

}  // namespace capstan
