// Header, labels and texts are settled in this order; each step completes the keys of a configuration, from which the
// choice of columns and the line for the log are made.
#include "data/labelled/table_reading.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/error.hpp"
#include "core/strings/strings.hpp"
#include "data/formats/dialect.hpp"
#include "data/formats/records.hpp"
#include "data/formats/row_labels.hpp"
#include "data/formats/table_columns.hpp"
#include "data/formats/table_head.hpp"
#include "data/labelled/column_roles.hpp"
#include "data/labelled/table_header.hpp"

namespace capstan {
namespace {

using Purpose = TableWish::Purpose;
using Role = TableReading::Role;

/// Finds the columns of one table, step by step.
class TableReader {
 public:
  TableReader(TableReading& reading, const TableWish& wish, TableRows rows)
      : reading_(reading),
        keys_(reading.keys),
        wish_(wish),
        json_(reading.format->fields == TableFormat::Fields::keys),
        rows_(std::move(rows)) {
    reading.sample = ColumnSample(rows_, header());
    reading.roles.assign(sample().columns(), Role::none);
    for (const std::string& column : {keys_.weight_column, keys_.group_column})
      if (const auto at = column.empty() ? std::nullopt : sample().index_of(column)) marks_.push_back(*at);
  }

  void run() {
    if (wish_.purpose == Purpose::settle) settle();
    if (wish_.purpose == Purpose::new_texts) take_new();
    if (wish_.purpose == Purpose::read) set_roles();
  }

 private:
  const ColumnSample& sample() const { return reading_.sample; }

  std::string usual_label() const { return !json_ ? "1" : keys_.multi_label ? "labels" : "label"; }
  std::string usual_text() const { return json_ ? "text" : "-1"; }

  std::optional<bool> header() {
    if (json_) return true;
    if (wish_.purpose == Purpose::read) return keys_.header;
    if (wish_.purpose == Purpose::settle) return configured_header(rows_, keys_);
    const CommandHeader found = header_of(rows_, keys_, {reading_.file, wish_.classes, wish_.texts});
    if (found.other_columns) {
      keys_.label_column.reset();
      keys_.text_columns.clear();
    }
    return found.has_names;
  }

  // The first table of a training.

  void settle() {
    found_header_ = !json_ && sample().begins_with_names() && !keys_.header;
    if (found_header_) {
      keys_.header = true;
      add("header", "true");
    }
    if (keys_.label_columns.empty())
      settle_label();
    else
      settle_flags();
    settle_texts();
    set_roles();
    if (!reading_.said.empty()) reading_.said = "read with" + reading_.said + not_read();
  }

  void add(const std::string& key, const std::string& value) {
    reading_.said += fmt::format(" data.{}={}", key, value);
  }

  void settle_label() {
    label_ = sample().index_of(keys_.label_column.value_or(usual_label()));
    if (!keys_.label_column && !(json_ && label_)) {
      label_ = searched_label();
      if (label_ && (found_header_ || json_ || *label_ > 0))
        add("label_column", *(keys_.label_column = sample().name_of(*label_)));
    }
    if (!label_ || keys_.multi_label || !sample().facts(*label_).lists) return;
    if (json_ && !keys_.label_column) keys_.label_column = sample().name_of(*label_);  // "labels" without it
    keys_.multi_label = true;
    add("multi_label", "true");
  }

  std::optional<size_t> searched_label() const {
    const LabelSearch found = find_label(sample(), !keys_.multi_label, marks_);
    if (found.column) return found.column;
    if (found.candidates.empty() && (json_ || !wish_.classifies)) return std::nullopt;  // reading says what is missing
    if (!wish_.classifies) return found.candidates.front();                             // to which no model is trained
    const auto is_flag = [&](size_t c) { return sample().rows() > 0 && sample().facts(c).flags == sample().rows(); };
    std::vector<std::string> names, all, flags;
    for (const size_t c : found.candidates) names.push_back(sample().name_of(c));
    for (size_t c = 0; c < sample().columns(); ++c) {
      all.push_back(sample().name_of(c));
      if (is_flag(c)) flags.push_back(all.back());  // a rare label may be 0 in all rows of the sample
    }
    const bool of_flags = names.size() > 1 && std::all_of(found.candidates.begin(), found.candidates.end(), is_flag);
    throw ConfigError(fmt::format(
        "data: {}: {}; choose it with data.label_column{}", reading_.file,
        names.empty() ? fmt::format("no column looks like the label ({})", join_first(all))
                      : fmt::format("the label could be the column {}", join_first(names, " or ")),
        of_flags ? fmt::format(", or data.label_columns=[{}] if each of them is a label", join(flags)) : ""));
  }

  /// Names the label_columns, and finds out whether texts have exactly one of them.
  void settle_flags() {
    for (std::string& column : keys_.label_columns) {
      const auto at = sample().index_of(column);
      if (!at) return;  // reading the table says what is missing
      column = sample().name_of(*at);
      flags_.push_back(*at);
    }
    if (keys_.multi_label || std::all_of(rows_.begin() + 1, rows_.end(), [&](const auto& row) { return has_one(row); }))
      return;
    keys_.multi_label = true;
    add("multi_label", "true");
  }

  /// Is exactly one of the labels 1? Also true for a row that cannot be used, which reading the table reports.
  bool has_one(const std::vector<std::string>& row) const {
    try {
      return std::count_if(flags_.begin(), flags_.end(),
                           [&](size_t c) { return flag_of(c < row.size() ? row[c] : "", "", ""); }) == 1;
    } catch (const Error&) {
      return true;
    }
  }

  void settle_texts() {
    if (keys_.text_columns.empty() && !json_ && !keys_.header) refuse_divided_texts(sample(), rows_, reading_.file);
    if (!keys_.text_columns.empty() || (!label_ && flags_.empty())) return;
    const std::vector<size_t> texts = searched_texts({});
    if (texts.empty()) return;
    const bool usual = texts.size() == 1 && (json_ ? sample().first_row()[texts.front()] == usual_text()
                                                   : !found_header_ && texts.front() + 1 == sample().columns());
    if (!usual) {
      for (const size_t c : texts) keys_.text_columns.push_back(sample().name_of(c));
      add("text_columns", "[" + join(keys_.text_columns) + "]");
    } else if (!json_ && !reading_.said.empty()) {
      reading_.said += fmt::format(" (the text is column {})", texts.front() + 1);
    } else if (!json_ && sample().columns() > 2 && label_ && !keys_.label_column) {
      reading_.said = fmt::format(" the label in column {} and the text in column {} of {}", *label_ + 1,
                                  texts.front() + 1, sample().columns());
    }
  }

  // A command's table.

  void take_new() {
    keys_.header = sample().begins_with_names();
    if (json_) forget_numbers();
    if (wish_.classes != nullptr && keys_.label_columns.empty() && sample().columns() > 1)
      holders_ = columns_of_classes(rows_, sample(), *wish_.classes, keys_.multi_label ? keys_.label_separator : "");
    for (const std::string& column : keys_.label_columns)
      if (const auto at = sample().index_of(column)) holders_.push_back(*at);
    label_ = new_label();
    if (label_) keys_.label_column = sample().name_of(*label_);
    take_new_texts();
    set_roles();
    say_new();
  }

  /// Objects have keys, not columns by number.
  void forget_numbers() {
    if (keys_.label_column && !is_column_name(*keys_.label_column)) keys_.label_column.reset();
    if (!std::all_of(keys_.text_columns.begin(), keys_.text_columns.end(), is_column_name)) keys_.text_columns.clear();
  }

  bool has_labels(size_t column) const { return std::find(holders_.begin(), holders_.end(), column) != holders_.end(); }

  /// The column of the labels; none where there are several (label_columns). Where none is found and the table must
  /// have one, that which the training had.
  std::optional<size_t> new_label() const {
    if (!keys_.label_columns.empty()) return std::nullopt;
    const auto trained = sample().index_of(keys_.label_column.value_or(usual_label()));
    if (trained && keys_.label_column && is_column_name(*keys_.label_column) && sample().begins_with_names())
      return trained;
    if (trained && (has_labels(*trained) || (json_ && !keys_.label_column))) return trained;
    if (holders_.size() == 1) return holders_.front();
    return wish_.labels ? trained : std::nullopt;
  }

  void take_new_texts() {
    if (!wish_.texts.empty()) keys_.text_columns = wish_.texts;
    for (const std::string& column : keys_.text_columns)
      if (const auto at = sample().index_of(column); at && !is_column_name(column) && (at == label_ || has_labels(*at)))
        throw Error(
            fmt::format("{}: column {} has labels, but the run reads its texts there; name the columns of the "
                        "texts with --text-column or data.text_columns",
                        reading_.file, column));
    if (!keys_.text_columns.empty()) return;
    std::vector<size_t> texts = searched_texts(holders_);
    if (texts.empty()) texts = searched_texts({});
    for (const size_t c : texts) keys_.text_columns.push_back(sample().name_of(c));
  }

  /// The columns of the texts among those that are not the label, a flag, the weight, the group or in `left_out`.
  std::vector<size_t> searched_texts(const std::vector<size_t>& left_out) const {
    std::vector<bool> allowed(sample().columns(), true);
    for (const auto& columns : {flags_, left_out})
      for (const size_t c : columns) allowed[c] = false;
    if (sample().columns() > 1)
      for (const size_t c : marks_) allowed[c] = false;
    if (label_ && sample().columns() > 1) allowed[*label_] = false;
    const TextSearch found = find_texts(sample(), allowed, json_);
    if (!found.belong_together) ask_for_texts(sample(), found, reading_.file, wish_.purpose == Purpose::new_texts);
    return found.columns;
  }

  void set_roles() {
    const auto set = [&](const std::string& column, Role role) {
      if (const auto at = sample().index_of(column)) reading_.roles[*at] = role;
    };
    for (const std::string& column : keys_.label_columns) set(column, Role::flag);
    if (label_)
      reading_.roles[*label_] = Role::label;
    else if (keys_.label_columns.empty() && wish_.purpose != Purpose::new_texts)
      set(keys_.label_column.value_or(usual_label()), Role::label);
    for (const std::string& column : keys_.text_columns) set(column, Role::text);
    if (keys_.text_columns.empty()) set(usual_text(), Role::text);
    if (!keys_.weight_column.empty()) set(keys_.weight_column, Role::weight);
    if (!keys_.group_column.empty()) set(keys_.group_column, Role::group);
  }

  /// "; not read: id, date"; empty where all columns are read.
  std::string not_read() const {
    std::vector<std::string> unread;
    for (size_t c = 0; c < sample().columns(); ++c)
      if (reading_.roles[c] == Role::none) unread.push_back(sample().name_of(c));
    return unread.empty() ? "" : "; not read: " + join_first(unread);
  }

  std::string shown(size_t column) const {
    return json_ ? "the key " + sample().first_row()[column] : sample().shown(column);
  }

  /// What is read of a command's table; nothing where that is no question.
  void say_new() {
    std::vector<std::string> texts;
    for (size_t c = 0; c < sample().columns(); ++c)
      if (reading_.roles[c] == Role::text) texts.push_back(shown(c));
    if (texts.empty()) return;  // reading the table says what is missing
    if (sample().columns() < 2 && (json_ || !sample().begins_with_names())) return;
    reading_.said = "the text is " + join_first(texts, " and ");
    if (label_ && sample().columns() > 1)
      reading_.said += fmt::format("; the label, {}, is {}", shown(*label_), wish_.labels ? "compared" : "left out");
    reading_.said += not_read();
  }

 private:
  TableReading& reading_;
  LabelledSourceConfig& keys_;  // the reading's, completed step by step
  const TableWish& wish_;
  bool json_, found_header_ = false;
  TableRows rows_;
  std::optional<size_t> label_;
  std::vector<size_t> marks_ = {};    // the columns of weights and groups
  std::vector<size_t> flags_ = {};    // indices of the columns in data.label_columns
  std::vector<size_t> holders_ = {};  // new texts: columns of which nearly all values are classes
};

/// The columns that the keys of a configuration choose.
ColumnChoice choice_of(const LabelledSourceConfig& keys, const Dialect& dialect, const TableWish& wish) {
  ColumnChoice columns{keys.header.value_or(false), keys.label_column, keys.text_columns};
  if (keys.multi_label) columns.label_separator = keys.label_separator;
  columns.label_columns = keys.label_columns;
  columns.dialect = dialect;
  columns.empty_labels = !wish.classifies;
  if (wish.purpose == Purpose::new_texts) {
    columns.labels = wish.labels;
    columns.text_key = "--text-column";
  } else {
    columns.weight = keys.weight_column;
    columns.group = keys.group_column;
  }
  return columns;
}

}  // namespace

TableReading understand(std::string_view content, const std::string& file, const TableFormat& format,
                        const TableWish& wish) {
  constexpr const char* doubt =
      "its first row looks like names but is read as a text: if it has names, --set data.header=true";
  TableReading reading;
  reading.file = file;
  reading.format = &format;
  reading.keys = wish.config;
  reading.dialect = wish.config.dialect();
  const auto head = [&] { return first_rows(content, file, format, ColumnSample::rows_read, reading.dialect); };
  TableRows rows = head();
  const bool is_new = wish.purpose == Purpose::new_texts;
  if (is_new && reading.has_columns() && reading.dialect.delimiter != '\0' && common_width(rows) < 2) {
    reading.dialect = {};  // a table of another kind than that of the training
    rows = head();
  }
  if (format.dialect != nullptr) reading.dialect = format.dialect(without_mark(content, file), file, reading.dialect);
  const bool doubtful = is_new && reading.has_columns() && wish.config.header == std::optional(false) &&
                        std::none_of(wish.texts.begin(), wish.texts.end(), is_column_name) && begins_with_header(rows);
  TableReader(reading, wish, std::move(rows)).run();
  std::vector<std::string> said;
  const std::string remark = format.line_ends ? unusual(reading.dialect) : "";
  if (!remark.empty() && (!is_new || !reading.said.empty())) said.push_back(remark);
  if (!reading.said.empty()) said.push_back(reading.said);
  if (doubtful) said.emplace_back(doubt);
  reading.said = said.empty() ? "" : fmt::format("{}{}: {}", is_new ? "" : "data: ", file, join(said, "; "));
  reading.choice = choice_of(reading.keys, reading.dialect, wish);
  return reading;
}

std::string find_columns(LabelledSourceConfig& config, bool classifies) {
  const TableHead head = head_of_tables(config.train, config.table_format(), config.dialect());
  if (head.first_row.empty()) return "";
  TableReading reading =
      understand(head.content, head.file, *head.format, {config, TableWish::Purpose::settle, classifies});
  config = std::move(reading.keys);
  return reading.said;
}

}  // namespace capstan
