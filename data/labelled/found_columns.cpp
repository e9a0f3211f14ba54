// ColumnFinder sets the keys of a configuration from the first training table: the header, then the labels, then the
// text. NewTable finds the columns of a command's table, where labels are known by the classes of the run.
// tests/data/labelled/test_tables_people_have.cpp and test_checks.cpp.
#include "data/labelled/found_columns.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/error.hpp"
#include "core/strings/strings.hpp"
#include "data/formats/row_labels.hpp"
#include "data/formats/table_columns.hpp"
#include "data/formats/table_head.hpp"
#include "data/labelled/column_sample.hpp"

namespace capstan {
namespace {

using Rows = std::vector<std::vector<std::string>>;

bool is_name(const std::string& column) { return !parse_integer(column); }

bool names_column(const std::vector<std::string>& header, const std::string& column) {
  return is_name(column) && std::find(header.begin(), header.end(), column) != header.end();
}

/// Is the first row a header: as configured, or if it has a column's name that the configuration uses. Unset: the
/// sample decides.
std::optional<bool> header_of(const LabelledSourceConfig& config, const Rows& rows) {
  if (config.header || rows.empty()) return config.header;
  std::vector<std::string> columns = config.text_columns;
  if (config.label_column) columns.push_back(*config.label_column);
  columns.insert(columns.end(), config.label_columns.begin(), config.label_columns.end());
  if (!config.weight_column.empty()) columns.push_back(config.weight_column);
  const std::vector<std::string> names = column_names(rows.front());
  const bool named = std::any_of(columns.begin(), columns.end(),
                                 [&](const std::string& column) { return names_column(names, column); });
  return named ? std::optional(true) : std::nullopt;
}

/// Removes the names of columns from the configuration if the table has none of them and does not begin with a header.
/// Returns true in this case: that there is no header is a guess.
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

/// A remark for the user where the content has an unusual delimiter; empty for the usual one.
std::string remark_of(std::string_view content, const std::string& file, const TableFormat& format,
                      const Dialect& dialect) {
  const char usual = format.name == std::string_view("tsv") ? '\t' : ',';
  const char found = format.delimiter == nullptr ? usual : format.delimiter(without_mark(content, file), file, dialect);
  return found == usual ? "" : fmt::format("columns are separated by {}", name_of_delimiter(found));
}

/// The columns of a table of new texts.
class NewTable {
 public:
  NewTable(const LabelledSourceConfig& config, const ClassNames* classes, Rows rows)
      : config_(config), classes_(classes), sample_(rows, header_of(config, rows)), rows_(std::move(rows)) {
    for (const std::string& column : config.label_columns)
      if (const auto at = sample_.index_of(column)) labels_.push_back(*at);
    if (!config.label_columns.empty()) return;
    for (const bool numbers : {false, true})  // numbers of classes are looked for where no column has their names
      for (size_t c = 0; c < sample_.columns() && sample_.columns() > 1 && classes != nullptr; ++c)
        if ((!numbers || labels_.empty()) && holds_classes(c, numbers)) labels_.push_back(c);
  }

  const ColumnSample& sample() const { return sample_; }
  /// Is a field of the first row the name of a class?
  bool begins_with_class() const {
    return classes_ != nullptr && !rows_.empty() &&
           std::any_of(rows_.front().begin(), rows_.front().end(), [&](const std::string& field) {
             const std::string label(label_text(field));
             const auto number = classes_->find(label);
             return number && classes_->names()[static_cast<size_t>(*number)] == label;
           });
  }

  /// The column of the labels; none where there are several (label_columns). `needed`: where none is found, the one
  /// that the training had.
  std::optional<size_t> label(bool needed) const {
    if (!config_.label_columns.empty()) return std::nullopt;
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
    std::vector<bool> not_the_label(sample_.columns()), without_labels(not_the_label);
    for (size_t c = 0; c < not_the_label.size(); ++c) {
      not_the_label[c] = c != label || not_the_label.size() == 1;
      without_labels[c] = not_the_label[c] && !has_labels(c);
    }
    auto text = sample_.text_or_last(without_labels);
    if (!text) text = sample_.text_or_last(not_the_label);
    if (!text || *text + 1 == sample_.columns()) return {};
    return {std::to_string(*text + 1)};
  }

 private:
  bool has_labels(size_t column) const { return std::find(labels_.begin(), labels_.end(), column) != labels_.end(); }

  /// Are nearly all values classes: their names or, with `numbers`, also their numbers?
  bool holds_classes(size_t column, bool numbers) const {
    constexpr size_t others = 20;  // one value of 20 may be no class
    size_t known = 0, total = 0;
    for (size_t r = sample_.begins_with_names() ? 1 : 0; r < rows_.size(); ++r) {
      if (column >= rows_[r].size()) continue;
      const std::string value(label_text(rows_[r][column]));
      for (const std::string& label :
           config_.multi_label ? split_labels(value, config_.label_separator) : std::vector<std::string>{value}) {
        const auto number = classes_->find(label);
        total += label.empty() ? 0 : 1;
        known += number && (numbers || classes_->names()[static_cast<size_t>(*number)] == label) ? 1 : 0;
      }
    }
    return known > 0 && others * (total - known) <= total;
  }

  const LabelledSourceConfig& config_;
  const ClassNames* classes_;
  ColumnSample sample_;
  Rows rows_;
  std::vector<size_t> labels_ = {};  // columns of which nearly all values are classes
};

/// Finds the columns of the first training table, step by step, and says which.
class ColumnFinder {
 public:
  ColumnFinder(LabelledSourceConfig& config, TableHead table, bool classifies)
      : config_(config),
        classifies_(classifies),
        keys_(table.has_keys()),
        file_(std::move(table.file)),
        rows_(std::move(table.rows)),
        sample_(rows_, keys_ ? true : header_of(config, rows_)) {
    if (!config.weight_column.empty()) sample_.leave_out(config.weight_column);
  }

  std::string run() {
    header_ = !keys_ && sample_.begins_with_names() && !config_.header;
    if (header_) {
      config_.header = true;
      add("header", "true");
    }
    if (config_.label_columns.empty())
      find_label();
    else
      find_labels();
    find_text();
    return said_;
  }

 private:
  void add(const std::string& key, const std::string& value) { said_ += fmt::format(" data.{}={}", key, value); }
  /// The column of a key that is read without being named, in JSONL; none in other formats.
  std::optional<size_t> usual(const char* key) const { return keys_ ? sample_.index_of(key) : std::nullopt; }

  void find_label() {
    label_ = config_.label_column ? sample_.index_of(*config_.label_column)
                                  : usual(config_.multi_label ? "labels" : "label");
    if (!label_ && !config_.label_column) {
      label_ = searched_label();
      if (label_ && (header_ || keys_ || *label_ > 0))
        add("label_column", *(config_.label_column = sample_.name_of(*label_)));
    }
    if (!label_ || config_.multi_label || !sample_.has_lists(*label_)) return;
    if (keys_ && !config_.label_column) config_.label_column = sample_.name_of(*label_);  // "labels" without it
    config_.multi_label = true;
    add("multi_label", "true");
  }

  std::optional<size_t> searched_label() const {
    const LabelSearch found = sample_.find_label(!config_.multi_label);
    if (found.column) return found.column;
    if (!classifies_) return sample_.likely_label();
    if (keys_ && found.candidates.empty()) return std::nullopt;  // reading the first object says what is missing
    std::vector<std::string> names, all, flags;
    for (const size_t c : found.candidates) names.push_back(sample_.name_of(c));
    for (size_t c = 0; c < sample_.columns(); ++c) {
      all.push_back(sample_.name_of(c));
      if (sample_.has_flags(c)) flags.push_back(all.back());  // a rare label may be 0 in all rows of the sample
    }
    const bool of_flags = names.size() > 1 && std::all_of(found.candidates.begin(), found.candidates.end(),
                                                          [&](size_t c) { return sample_.has_flags(c); });
    throw ConfigError(fmt::format(
        "data: {}: {}; choose it with data.label_column{}", file_,
        names.empty() ? fmt::format("no column looks like the label ({})", join_first(all))
                      : fmt::format("the label could be the column {}", join_first(names, " or ")),
        of_flags ? fmt::format(", or data.label_columns=[{}] if each of them is a label", join(flags)) : ""));
  }

  /// Finds label_columns, each of which is a label, and whether texts have exactly one of them.
  void find_labels() {
    std::vector<size_t> places;
    for (std::string& column : config_.label_columns) {
      const auto at = sample_.index_of(column);
      if (!at) return;  // reading the table says what is missing
      column = sample_.name_of(*at);
      places.push_back(*at);
    }
    labels_ = places;
    if (config_.multi_label ||
        std::all_of(rows_.begin() + 1, rows_.end(), [&](const auto& row) { return has_one(row); }))
      return;
    config_.multi_label = true;
    add("multi_label", "true");
  }

  /// Is exactly one of the labels 1? Also true for a row that cannot be used, which reading the table reports.
  bool has_one(const std::vector<std::string>& row) const {
    int64_t count = 0;
    try {
      for (const size_t c : labels_) count += flag_of(c < row.size() ? row[c] : "", "", "") ? 1 : 0;
    } catch (const Error&) {
      return true;
    }
    return count == 1;
  }

  /// Throws ConfigError for a table such as "1,Good, and cheap", whose texts hold delimiters and lack their quotes: the
  /// last column would be the end of a text.
  void refuse_divided_texts() const {
    constexpr size_t min_rows = 3;
    const size_t rows = rows_.size(), columns = sample_.columns();
    if (keys_ || sample_.begins_with_names() || config_.header || columns < 3 || rows < min_rows) return;
    const auto goes_on = [&](const std::vector<std::string>& row) {
      return row.size() == columns && row.back().size() > 1 && row.back()[0] == ' ' && row.back()[1] != ' ';
    };
    if (10 * std::count_if(rows_.begin(), rows_.end(), goes_on) < static_cast<std::ptrdiff_t>(9 * rows)) return;
    throw ConfigError(fmt::format(
        "data: {}: column {} begins with a blank in nearly all rows, as a text does that is divided by the "
        "delimiter in it; put the texts in double quotes (or set data.quote=single for single ones), write TSV, or set "
        "data.text_columns if it is right",
        file_, columns));
  }

  void find_text() {
    if (config_.text_columns.empty()) refuse_divided_texts();
    if (!config_.text_columns.empty() || (!label_ && labels_.empty()) || usual("text")) return;
    std::vector<bool> allowed(sample_.columns(), true);
    for (const size_t c : labels_) allowed[c] = false;
    if (label_) allowed[*label_] = false;
    const auto text = keys_ && label_ ? sample_.likely_text(*label_) : sample_.text_or_last(allowed);
    if (!text) return;
    if (header_ || keys_ || *text + 1 < sample_.columns()) {
      refuse_namesakes(*text, allowed);
      config_.text_columns = {sample_.name_of(*text)};
      add("text_columns", "[" + config_.text_columns.front() + "]");
    } else if (!said_.empty()) {
      said_ += fmt::format(" (the text is column {})", *text + 1);
    } else if (sample_.columns() > 2 && label_ && !config_.label_column) {
      said_ = fmt::format(" the label in column {} and the text in column {} of {}", *label_ + 1, *text + 1,
                          sample_.columns());
    }
  }

  /// Throws ConfigError where other columns of words have the same name as that of the text.
  void refuse_namesakes(size_t text, const std::vector<bool>& allowed) const {
    std::vector<size_t> columns{text + 1};
    for (const size_t c : sample_.namesakes(text))
      if (allowed[c]) columns.push_back(c + 1);
    std::sort(columns.begin(), columns.end());
    if (columns.size() > 1)
      throw ConfigError(
          fmt::format("data: {}: the columns {} are called '{}'; choose the text with data.text_columns, "
                      "by number",
                      file_, join(columns, " and "), sample_.first_row()[text]));
  }

  LabelledSourceConfig& config_;
  bool classifies_, keys_, header_ = false;
  std::string file_, said_ = {};
  Rows rows_;
  ColumnSample sample_;
  std::optional<size_t> label_ = {};
  std::vector<size_t> labels_ = {};  // indices of the columns in data.label_columns
};

}  // namespace

std::string find_columns(LabelledSourceConfig& config, bool classifies) {
  TableHead table = head_of_tables(config.train, config.table_format(), ColumnSample::rows_read, config.dialect());
  if (table.rows.empty()) return "";
  const std::string remark = remark_of(table.content, table.file, *table.format, config.dialect()), file = table.file;
  std::string found = ColumnFinder(config, std::move(table), classifies).run();
  if (!found.empty()) found = (remark.empty() ? "read with" : "; read with") + found;
  return remark.empty() && found.empty() ? "" : fmt::format("data: {}: {}{}", file, remark, found);
}

FoundColumns columns_of_table(LabelledSourceConfig config, const std::vector<std::string>& texts,
                              std::string_view content, const std::string& file, const TableFormat& format,
                              const ClassNames* classes, bool labels) {
  Rows rows;
  Dialect dialect = config.dialect();
  if (format.fields == TableFormat::Fields::columns) {
    rows = first_rows(content, file, format, ColumnSample::rows_read, dialect);
    if (dialect.delimiter != '\0' && common_width(rows) < 2) {  // a table of another kind than that of the training
      dialect = {};
      rows = first_rows(content, file, format, ColumnSample::rows_read);
    }
  }
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
  found.choice.label_columns = config.label_columns;
  found.choice.text_key = "--text-column";
  found.choice.dialect = dialect;
  constexpr const char* doubt =
      "its first row looks like names but is read as a text: if it has names, --set data.header=true";
  if (format.fields != TableFormat::Fields::columns || (sample.columns() < 2 && !found.choice.header)) {
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
  const std::string remark = remark_of(content, file, format, dialect);
  found.said =
      fmt::format("{}: {}{}the text is {}", file, remark, remark.empty() ? "" : "; ", join_first(read, " and "));
  if (label && sample.columns() > 1)
    found.said += fmt::format("; the label, {}, is {}", shown(*label), labels ? "compared" : "left out");
  if (doubtful) found.said += fmt::format("; {}", doubt);
  return found;
}

}  // namespace capstan
