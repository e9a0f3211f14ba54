// What an input is, is decided before its first text is read (input_form.hpp); the lines that were read for it are
// texts, or the beginning of the table. What is logged says how an input was taken and how to ask for another way.
// tests/cli/inputs/test_inputs.cpp.
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
#include "data/labelled/table_reading.hpp"

namespace capstan {
namespace {

OnError on_error_of(const SourceConfig& data) {
  if (const auto* const labelled = std::get_if<LabelledSourceConfig>(&data)) return labelled->on_error;
  if (const auto* const pairs = std::get_if<PairSourceConfig>(&data)) return pairs->on_error;
  return OnError::stop;
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
  if (options.file != "-" || options.format != format_by_name || options.labels) decide();
}

void TextInput::decide() {
  if (std::exchange(decided_, true)) return;
  const auto first_lines = [&](size_t count) {
    in_.emplace(TextReader::input(options_.file));
    const size_t most = options_.file == "-" ? 1 : count;
    for (std::string line; waiting_.size() < most && in_->read_line(line);) waiting_.push_back(line);
    std::vector<std::string> lines(waiting_.begin(), waiting_.end());
    if (!lines.empty()) lines.front() = without_mark(waiting_.front(), in_->name());
    return lines;
  };
  const InputForm form = form_of(options_, data_, first_lines);
  if (form.kind == InputForm::Kind::files) return read_files();
  if (!in_) in_.emplace(TextReader::input(options_.file));
  format_ = form.format;
  if (format_ == nullptr && options_.labels)
    throw ConfigError(fmt::format(
        "--errors: {} is read as lines, which have no labels; give a table, and the name of its format with "
        "--input",
        in_->name()));
  if (format_ == nullptr && form.doubtful != nullptr) {
    log_warning(
        fmt::format("{}:1: looks like the first line of a table, but is read as a text; of a table: --input {}, with "
                    "--text-column NAME if the column of the texts has another name than in training",
                    in_->name(), form.doubtful->name));
    tab_said_ = true;
  }
  if (form.by_first_line)
    log_info(fmt::format("{}: begins as the data of the run and is read as {}; for texts in lines: --input lines",
                         in_->name(), format_->name));
  if (format_ != nullptr) read_rows();
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
  TableWish wish{config, TableWish::Purpose::new_texts};
  wish.classes = classes ? &*classes : nullptr;
  wish.texts = options_.text_columns;
  wish.labels = options_.labels;
  const TableReading reading = understand(content_, in_->name(), *format_, wish);
  if (!reading.said.empty()) log_info(reading.said);
  return reading.choice;
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

void TextInput::read_rows() {
  in_->limit(max_file_mb);
  for (const std::string& line : waiting_) content_ += line + '\n';
  if (!content_.empty() && !in_->had_line_end()) content_.pop_back();
  content_ += in_->read_rest();
  rows_given_ = true;
  BadRows bad(on_error_of(data_));
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
  for (const std::string& line : bad.summary()) log_warning(line);
}

bool TextInput::next(InputText& text) {
  decide();
  if (rows_given_) {
    if (at_ == rows_.size()) return false;
    text = std::move(rows_[at_++]);
    return true;
  }
  text = InputText();
  if (!waiting_.empty()) {
    text.text = std::move(waiting_.front());
    waiting_.pop_front();
  } else if (!in_->read_line(text.text)) {
    return false;
  }
  text.line = ++line_;
  if (line_ == 1 && waiting_.empty() && !in_->had_line_end()) check_line_ends(text.text, in_->name());
  if (!text.text.empty() && text.text.back() == '\r') text.text.pop_back();
  if (line_ == 1) text.text = without_mark(text.text, in_->name());
  text.place = fmt::format("{}:{}", in_->name(), line_);
  text.columns = {text.text};
  if (columns_ > 1) {
    const std::vector<std::string_view> columns = split(text.text, "\t");
    text.columns.assign(columns.begin(), columns.end());
  }
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
  decide();
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
  std::vector<int64_t> lines;
  for (const InputText& row : rows_) lines.push_back(row.line);
  return capstan::with_fields(*format_, {content_, in_->name(), header_, dialect_, columns, added, lines});
}

void for_each_batch(TextInput& texts, size_t size, const std::function<void(const std::vector<InputText>&)>& take) {
  std::vector<InputText> batch;
  const auto hand_on = [&] {
    const std::vector<InputText> full = std::exchange(batch, {});
    if (full.empty()) return;
    try {
      take(full);
    } catch (const TextError& error) {
      const auto index = static_cast<std::ptrdiff_t>(error.index());
      if (index > 0) take({full.begin(), full.begin() + index});
      throw;
    }
  };
  try {
    for (InputText text; texts.next(text);) {
      batch.push_back(std::move(text));
      if (batch.size() >= size || texts.idle()) hand_on();
    }
  } catch (const Error&) {
    hand_on();  // the texts that precede the one that cannot be read
    throw;
  }
  hand_on();
}

}  // namespace capstan
