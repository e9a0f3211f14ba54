// LabelledCheck collects facts of rows and files, and makes the tables of the report; warnings are in
// labelled_warnings.cpp. Copies of texts are found by hashes (data/checks/duplicates.hpp), so no text but the first
// three of a split is kept. tests/data/labelled/test_checks.cpp.
#include "data/labelled/labelled_check.hpp"

#include <algorithm>

#include "core/strings/printable.hpp"
#include "core/strings/strings.hpp"
#include "data/checks/report.hpp"
#include "data/formats/dialect.hpp"

namespace capstan {

uint32_t LabelledCheck::add_file(Split split, TableReading reading) {
  files_.push_back({split, std::move(reading)});
  return static_cast<uint32_t>(files_.size() - 1);
}

void LabelledCheck::set_content(uint32_t number, std::string_view content,
                                const std::function<void(size_t end)>& passed) {
  constexpr size_t piece = size_t{8} << 20;
  File& file = files_[number];
  EncodingCheck encoding;
  for (size_t at = 0; at < content.size(); at += piece) {
    encoding.push(content.substr(at, piece));
    if (passed) passed(std::min(content.size(), at + piece));
  }
  file.encoding = encoding.finish();
  // Tables may have either kind of line end, and line ends within quoted fields may be of another than those of rows.
  const TableFormat* const format = file.reading.format;
  if (file.encoding.lf == 0 || (format != nullptr && format->line_ends)) file.encoding.crlf = 0;
}

void LabelledCheck::refuse_other_columns(uint32_t number) const {
  const TableReading &table = files_[number].reading, &first = files_.front().reading;
  const ColumnSample &sample = table.sample, &expected = first.sample;
  if (config_.header.value_or(false) || !table.has_columns() || !first.has_columns()) return;
  if (sample.columns() == 0 || expected.columns() == 0) return;
  if (!config_.header && sample.begins_with_names() && !expected.begins_with_names())
    throw Error(
        fmt::format("{}:1: the row names columns ({}), but {} has no such row: give all files a header, or none",
                    table.file, join_first(sample.first_row()), first.file));
  const bool found_by_place = config_.text_columns.empty() || !config_.label_column;
  if (found_by_place && sample.columns() != expected.columns())
    throw Error(
        fmt::format("{}: has {} columns, but {} has {}: give the files headers with the same names, or set "
                    "data.label_column and data.text_columns to numbers that are right for all",
                    table.file, sample.columns(), first.file, expected.columns()));
}

void LabelledCheck::add_row(Split split, const std::string& text, const Row& row) {
  constexpr size_t shown = 3;
  OfSplit& facts = counts(split);
  facts.rows.push_back(row);
  if (facts.first.size() < shown) facts.first.push_back(text);
  if (config_.max_length > 0 && row.tokens > config_.max_length) ++facts.cut;
  if (text.find_first_of(" \t\n") != std::string::npos) return;
  ++facts.single_words;
  if (is_number(text)) ++facts.numbers;
}

void LabelledCheck::finish(std::vector<std::string> classes) {
  classes_ = std::move(classes);
  MarkSample marks;
  for (uint32_t s = 0; s < checked_splits; ++s) {
    OfSplit& split = splits_[s];
    split.of_class.assign(classes_.size(), 0);
    for (size_t i = 0; i < split.rows.size(); ++i) {
      const Row& row = split.rows[i];
      for (const int32_t label : labels(row)) ++split.of_class[static_cast<size_t>(label)];
      marks.add({row.hash, s, row.label_set, i, 1});
    }
  }
  duplicates_ = marks.duplicates();
}

std::string LabelledCheck::place(size_t split, uint64_t row) const {
  const Row& found = splits_[split].rows[row];
  return fmt::format("{}:{}", files_[found.file].reading.file, found.line);
}

std::string LabelledCheck::label_names(const Row& row) const {
  std::vector<std::string> names;
  for (const int32_t label : labels(row)) names.push_back(classes_[static_cast<size_t>(label)]);
  return join(names, config_.label_separator);
}

const TableReading* LabelledCheck::first_table() const {
  for (const File& file : files_)
    if (file.split == Split::train && file.reading.has_columns() && file.reading.sample.columns() > 0)
      return &file.reading;
  return nullptr;
}

namespace {

/// A table of how the tables were read: for tsv and csv, the dialect and the columns read.
DataTable tables_table(const LabelledCheck& check) {
  constexpr size_t listed = 20;
  DataTable table{"tables",
                  "How tables are read",
                  {"file", "format", "delimiter", "quote", "header", "columns", "label", "text"},
                  {}};
  for (const LabelledCheck::File& file : check.files()) {
    const TableReading& reading = file.reading;
    if (reading.format == nullptr || table.rows.size() == listed) continue;
    const ColumnChoice& choice = reading.choice;
    const bool columns = reading.has_columns(), fields = reading.format->fields != TableFormat::Fields::none;
    std::string names = columns ? std::to_string(reading.sample.columns()) : "", label, text;
    if (columns && choice.header) names += ": " + join_first(reading.sample.first_row());
    if (fields) {
      const char* const key = choice.label_separator.empty() ? "label" : "labels";
      label =
          choice.label_columns.empty() ? choice.label.value_or(columns ? "1" : key) : join_first(choice.label_columns);
      text = choice.text.empty() ? columns ? "the last" : "text" : join_first(choice.text, " + ");
    }
    const char quote = reading.dialect.quote;
    table.rows.push_back({reading.file, reading.format->name,
                          columns ? name_of_delimiter(reading.dialect.delimiter) : "",
                          !columns        ? ""
                          : quote == '\0' ? "none"
                                          : std::string(1, quote),
                          !columns        ? ""
                          : choice.header ? "yes"
                                          : "no",
                          names, label, text});
  }
  return table;
}

/// What each column of the first table is taken for, and what its values are.
DataTable columns_table(const LabelledCheck& check) {
  constexpr const char* roles[] = {"not read", "label", "label, of 0 and 1", "text", "weight", "group"};
  DataTable table{"columns", "Columns of the first table (20 at most)", {"column", "name", "taken for", "values"}, {}};
  const TableReading* const first = check.first_table();
  constexpr size_t listed = 20;
  for (size_t c = 0; first != nullptr && c < std::min(listed, first->sample.columns()); ++c)
    table.rows.push_back({static_cast<int64_t>(c) + 1,
                          first->sample.begins_with_names() ? first->sample.first_row()[c] : "",
                          roles[static_cast<size_t>(first->roles[c])], first->sample.facts(c).kind()});
  return table;
}

DataTable first_rows_table(const LabelledCheck& check) {
  DataTable table{"first_rows", "First rows", {"row", "label", "text"}, {}};
  for (const Split split : all_splits) {
    const LabelledCheck::OfSplit& facts = check.of(split);
    for (size_t i = 0; i < facts.first.size() && table.rows.size() < 3; ++i) {
      constexpr size_t columns = 70;
      const std::string line = printable_line(facts.first[i]);
      const std::string_view begin = first_columns(line, columns);
      table.rows.push_back({check.place(static_cast<size_t>(split), i), check.label_names(facts.rows[i]),
                            fmt::format("{}{}", begin, begin.size() < line.size() ? "..." : "")});
    }
  }
  return table;
}

DataTable splits_table(const LabelledCheck& check) {
  DataTable table{"splits",
                  fmt::format("Splits (lengths in {}, before truncation)", unit_of(check.config().tokenizer)),
                  {"split", "examples", "empty", "min", "median", "mean", "95%", "max", "truncated", "duplicates",
                   "in train", "in valid", "other label"},
                  {}};
  for (const Split split : all_splits) {
    const LabelledCheck::OfSplit& facts = check.of(split);
    if (facts.rows.empty() && facts.empty == 0) continue;
    const LengthSummary summary = facts.lengths();
    const Duplicates::OfSplit& twice = check.duplicates().splits[static_cast<size_t>(split)];
    table.rows.push_back({std::string(to_string(split)), static_cast<int64_t>(facts.rows.size()), facts.empty,
                          summary.least, summary.median, summary.mean, summary.percentile_95, summary.greatest,
                          facts.cut, twice.repeated.texts, twice.also_in[0].texts, twice.also_in[1].texts,
                          twice.other_label.texts});
  }
  return table;
}

DataTable classes_table(const LabelledCheck& check) {
  DataTable table{"classes", "Examples of each class", {"class", "train", "valid", "test"}, {}};
  for (size_t c = 0; c < check.classes().size(); ++c) {
    std::vector<DataTable::Cell> row{check.classes()[c]};
    for (const Split split : all_splits) row.emplace_back(check.of(split).of_class[c]);
    table.rows.push_back(std::move(row));
  }
  const auto larger = [](const auto& a, const auto& b) { return std::get<int64_t>(a[1]) > std::get<int64_t>(b[1]); };
  std::stable_sort(table.rows.begin(), table.rows.end(), larger);
  return table;
}

/// How many labels texts have; without rows unless the data are multi-label.
DataTable labels_table(const LabelledCheck& check) {
  DataTable table{"labels", "Texts by their number of labels", {"labels", "train", "valid", "test"}, {}};
  if (!check.config().multi_label) return table;
  std::map<size_t, std::array<int64_t, checked_splits>> texts;
  for (const Split split : all_splits)
    for (const LabelledCheck::Row& row : check.of(split).rows)
      ++texts[check.labels(row).size()][static_cast<size_t>(split)];
  for (const auto& [labels, counts] : texts)
    table.rows.push_back({static_cast<int64_t>(labels), counts[0], counts[1], counts[2]});
  return table;
}

DataTable files_table(const LabelledCheck& check) {
  constexpr size_t listed = 20;
  const bool few = check.files().size() <= listed;
  DataTable table{"files", few ? "Files" : "Files with unusual bytes", {"file", "split", "bytes", "remarks"}, {}};
  for (const LabelledCheck::File& file : check.files())
    if (const std::string remarks = file.encoding.remarks(); few || !remarks.empty())
      table.rows.push_back({file.reading.file, std::string(to_string(file.split)), file.encoding.bytes, remarks});
  return table;
}

DataTable conflicts_table(const LabelledCheck& check) {
  DataTable table{"label_noise", "The same text with different labels", {"text", "label", "copy", "label of copy"}, {}};
  const auto label = [&](uint32_t split, uint64_t row) {
    return check.label_names(check.of(all_splits[split]).rows[row]);
  };
  for (const TextPair& pair : check.duplicates().conflicts)
    table.rows.push_back({check.place(pair.first_split, pair.first), label(pair.first_split, pair.first),
                          check.place(pair.second_split, pair.second), label(pair.second_split, pair.second)});
  return table;
}

}  // namespace

DataReport report_of(const LabelledCheck& check) {
  DataReport report;
  for (DataTable (*const table)(const LabelledCheck&) : {tables_table, columns_table, first_rows_table, splits_table,
                                                         classes_table, labels_table, files_table, conflicts_table})
    if (DataTable made = table(check); !made.rows.empty()) report.tables.push_back(std::move(made));
  report.warnings = warnings_of(check);
  return report;
}

}  // namespace capstan
