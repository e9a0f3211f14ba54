// Columns are numbers: from 1, or negative from the end, so that the last column is -1 in tables of any width. Names
// become numbers when the header is read.
#include "data/formats/table_columns.hpp"

#include <algorithm>

#include "core/strings/strings.hpp"
#include "core/strings/utf8.hpp"
#include "data/formats/dialect.hpp"
#include "data/formats/records.hpp"
#include "data/formats/row_labels.hpp"

namespace capstan {

std::vector<std::string> column_names(const std::vector<std::string>& first_row) {
  std::vector<std::string> names;
  for (const std::string& field : first_row) names.emplace_back(label_text(field));
  return names;
}

void TableColumns::set_header(const std::vector<std::string>& first_row) {
  header_ = column_names(first_row);
  for (const std::string& name : header_) check_name(name, input_.file + ":1", "the name of a column");
  width_ = first_row.size();
  choose();
}

void TableColumns::set_rows(const std::vector<std::vector<std::string>>& first_rows) {
  width_ = common_width(first_rows);
  choose();
}

void TableColumns::choose() {
  const ColumnChoice& choice = input_.choice;
  if (choice.labels && choice.label_columns.empty()) label_ = number(choice.label.value_or("1"), choice.keys());
  if (choice.labels && !choice.label_columns.empty() && !choice.header)
    throw ConfigError("data.label_columns: the names of the columns are the labels; the table needs a header");
  if (choice.labels)
    for (const std::string& column : choice.label_columns) label_columns_.push_back(number(column, choice.keys()));
  if (choice.labels && !choice.weight.empty()) weight_ = number(choice.weight, "data.weight_column");
  if (choice.labels && !choice.group.empty()) group_ = number(choice.group, "data.group_column");
  for (const std::string& column : choice.text) text_.push_back(number(column, choice.keys()));
  if (text_.empty()) text_.push_back(-1);
  if (choice.labels) refuse_label_as_text();
}

void TableColumns::refuse_label_as_text() const {
  if (width_ < 2) return;  // what is wrong is that the table has one column alone: row() says so
  for (const int64_t label : label_columns_.empty() ? std::vector<int64_t>{label_} : label_columns_)
    for (const int64_t text : text_)
      if (place(label) == place(text) && place(text) < width_)
        throw input_.choice.label_is_text(input_.file, fmt::format("column {}", place(text) + 1));
}

std::string TableColumns::label_of(const std::vector<std::string>& fields) const {
  const bool known = input_.choice.labels && label_columns_.empty() && input_.choice.label_separator.empty();
  const size_t at = known ? place(label_) : fields.size();
  return fields.size() == width_ && at < width_ ? std::string(label_text(fields[at])) : "";
}

LabelledText TableColumns::row(const std::vector<std::string>& fields, int64_t line) const {
  const std::string where = fmt::format("{}:{}", input_.file, line);
  check_width(fields, where);
  LabelledText result{"", "", line};
  for (size_t i = 0; i < text_.size(); ++i) {
    const size_t at = place(text_[i]);
    const bool is_label = input_.choice.labels && label_columns_.empty() && at == place(label_);
    if (at >= width_ || is_label) throw_too_few(where);  // the latter of one column; see refuse_label_as_text()
    result.add_column(fields[at], i == 0);
  }
  if (input_.choice.labels) add_labels(result, fields, where);
  const auto field = [&](int64_t column, const char* noun, const std::string& chosen) -> const std::string& {
    if (place(column) < width_) return fields[place(column)];
    throw Error(fmt::format("{0}: too few columns: found {1}, but the {2} (data.{2}_column: {3}) is column {4}", where,
                            width_, noun, chosen, column));
  };
  if (weight_ != 0)
    result.weight = weight_of(field(weight_, "weight", input_.choice.weight), input_.choice.weight, where);
  if (group_ != 0) result.group = field(group_, "group", input_.choice.group);
  return result;
}

void TableColumns::add_labels(LabelledText& row, const std::vector<std::string>& fields,
                              const std::string& where) const {
  if (label_columns_.empty()) {
    const size_t at = place(label_);
    if (at >= width_) throw_too_few(where);
    set_label(row, input_.choice.targets ? fields[at] : std::string(label_text(fields[at])), input_.choice, where);
    return;
  }
  std::vector<std::string> labels;
  for (const int64_t column : label_columns_) {
    const size_t at = place(column);
    if (at >= width_) throw_too_few(where);
    if (flag_of(fields[at], header_[at], where)) labels.push_back(header_[at]);
  }
  set_labels(row, std::move(labels), input_.choice, where);
}

void TableColumns::check_width(const std::vector<std::string>& fields, const std::string& where) const {
  if (fields.size() == width_) return;
  const bool many = fields.size() > width_, tsv = delimiter_ == '\t';
  const std::string expected =
      header_.empty() ? fmt::format("most rows have {}", width_) : fmt::format("the header has {}", width_);
  // A field with an odd number of quotes is quoted over several lines, or holds a tab within its quotes.
  const bool open_quote = std::any_of(fields.begin(), fields.end(), [](const std::string& field) {
    return std::count(field.begin(), field.end(), '"') % 2 == 1;
  });
  std::string remedy = tsv ? "; a field of tsv holds no tab" : "";
  if (many && !tsv) remedy = fmt::format("; quote fields that contain {}", name_of_delimiter(delimiter_));
  const bool single =
      std::any_of(fields.begin(), fields.end(), [](const std::string& f) { return starts_with(f, "'"); });
  if (many && !tsv && single) remedy += "; where single quotes do that, set data.quote=single";
  if (tsv && open_quote)
    remedy = "; tsv has no quotes: for quoted fields, also with line ends in them, set format: csv";
  throw Error(fmt::format("{}: too {} columns: found {}, but {}{}", where, many ? "many" : "few", fields.size(),
                          expected, remedy));
}

void TableColumns::throw_too_few(const std::string& where) const {
  const char* const remedy =
      delimiter_ == '\t' && width_ == 1 ? "; for commas set data.format: csv, for others data.delimiter" : "";
  throw Error(
      fmt::format("{}: too few columns: found {}, but {} is column {} and {} column {}; columns are separated by {} "
                  "(format {}){}; choose others with {}",
                  where, width_, input_.choice.label_noun(),
                  label_columns_.empty() ? std::to_string(label_) : join(label_columns_), input_.choice.text_noun(),
                  join(text_, " and "), name_of_delimiter(delimiter_), format_, remedy, input_.choice.keys()));
}

size_t TableColumns::place(int64_t column) const {
  const int64_t at = column > 0 ? column - 1 : static_cast<int64_t>(width_) + column;
  return at < 0 ? width_ : static_cast<size_t>(at);
}

int64_t TableColumns::number(const std::string& column, const std::string& keys) const {
  std::vector<int64_t> numbers;
  for (size_t c = 0; c < header_.size(); ++c)
    if (header_[c] == column) numbers.push_back(static_cast<int64_t>(c) + 1);
  if (numbers.size() == 1) return numbers.front();
  if (numbers.size() > 1)
    throw Error(fmt::format("{}:1: the columns {} are called '{}'; choose one by its number with {}", input_.file,
                            join(numbers, " and "), column, keys));
  const auto value = parse_integer(column);
  if (value && *value != 0) return *value;
  if (!input_.choice.header)
    throw ConfigError(
        fmt::format("data: column '{}' is not a number (1 is the first, -1 the last); column names require header: "
                    "true, others are chosen with {}",
                    column, keys));
  throw Error(fmt::format(
      "{}:1: no column is called '{}'; the first row has: {}; choose others with {}, or give the file the header of "
      "the training data",
      input_.file, column, join_first(header_), keys));
}

}  // namespace capstan
