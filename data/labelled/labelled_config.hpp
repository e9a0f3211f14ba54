// The configuration of labelled texts for classifiers: `data:` of a run, with its keys, limits and help. A run saves
// the settings in its identity, so a new key needs a default that means what runs without it meant:
// tests/data/test_data_source.cpp (identities of earlier versions) and tests/cli/runs/test_old_runs.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/config/schema.hpp"
#include "data/batches/text_example.hpp"
#include "data/formats/table_format.hpp"
#include "data/tokenizers/tokenizer_kinds.hpp"

namespace capstan {

struct LabelledSourceConfig {
  static constexpr const char* type_name = "labelled";
  static constexpr const char* default_label_separator = ",";
  std::vector<std::string> train, valid, test;
  std::string format = format_by_name;
  std::string delimiter, quote = "\"";
  std::optional<bool> header;
  std::optional<std::string> label_column;
  std::vector<std::string> label_columns;
  std::string weight_column, group_column;
  bool multi_label = false;
  std::string label_separator = default_label_separator;
  std::vector<std::string> text_columns;
  bool separator = false;
  std::vector<std::string> classes;
  double valid_fraction = 0.1;
  int64_t folds = 0, fold = 0;
  double train_fraction = 1;  // no key: of every class, for the short runs of a search
  int64_t max_length = 512;
  Truncate truncate = Truncate::head;
  OnError on_error = OnError::stop;
  TokenizerConfig tokenizer = WordTokenizerConfig{WordSplit::words, true, 30000, 2};

  /// data.format, where delimiter or quote say that files are csv.
  std::string table_format() const {
    return format == format_by_name && (!delimiter.empty() || quote != "\"") ? "csv" : format;
  }
  /// `delimiter` and `quote` as characters; of those that validate() accepts.
  Dialect dialect() const {
    const bool is_tab = delimiter == "tab" || delimiter == "\\t";
    return {is_tab              ? '\t'
            : delimiter.empty() ? '\0'
                                : delimiter.front(),
            quote == "none"     ? '\0'
            : quote == "single" ? '\''
                                : quote.front()};
  }
};
template <class Fields>
void describe(Fields& f, LabelledSourceConfig& c) {
  f("train", c.train, not_empty(),
    "files with one labelled text per row; with format folders: folders that have one sub-folder per class");
  f("valid", c.valid, any(), "the same for validation; if empty, valid_fraction of the training data is held out");
  f("test", c.test, any(), "the same for the test set");
  f("format", c.format, one_of(data_format_names()),
    "auto: by the name of the file; fasttext: lines whose words with the prefix `__label__` are their labels; folders: "
    "each file is a text, and its folder is its class");
  f("delimiter", c.delimiter, any(),
    "character between the columns of csv files, or tab; \"\" = found. With it, files of any name are csv");
  f("quote", c.quote, not_empty(),
    "character around fields of csv files that hold delimiters, or single (that is, '), or none");
  f("header", c.header, any(), "the first row of tsv and csv files names the columns; null = found by its names");
  f("label_column", c.label_column, any(),
    "column of the label: a number from 1, a name from the header, or a key; null = found, or 1, or \"label\" in jsonl "
    "(multi_label: \"labels\")");
  f("label_columns", c.label_columns, any(),
    "instead of label_column: columns of 0 and 1, each of which is a label, by their names in the header or their "
    "keys; "
    "where not exactly one is 1, this sets multi_label");
  f("weight_column", c.weight_column, any(),
    "column of the weight of a text, a number from 0 that its loss is multiplied by in training; \"\" = all count the "
    "same");
  f("group_column", c.group_column, any(),
    "column of what a text belongs to, such as a customer or a thread: texts of one group are held out together; \"\" "
    "= "
    "each text is its own");
  f("multi_label", c.multi_label, any(),
    "a text has any number of labels: joined by label_separator, or a list as JSON or Python write it; with format "
    "fasttext, several words");
  f("label_separator", c.label_separator, not_empty(),
    "text between the labels of a text, in the data and in predictions");
  f("text_columns", c.text_columns, any(),
    "columns of the text, joined by a space; [] = found, or the last one, or \"text\" in jsonl");
  f("separator", c.separator, any(),
    "for text pairs: a separator token instead of a space between the text_columns; in the input of predict a tab");
  f("classes", c.classes, any(),
    "names of the classes; labels are these names or their numbers from 0. [] = the labels of the training data. With "
    "format "
    "folders, other folders are ignored");
  f("valid_fraction", c.valid_fraction, between_below(0, 1),
    "share of the training data held out for validation; with one label per text, of every class");
  f("folds", c.folds, between(0, 1000),
    "for cross-validation: the training examples are divided into so many folds, of which `fold` is held out for "
    "validation; 0 = no folds");
  f("fold", c.fold, between(0, 999), "the fold held out for validation, counted from 0");
  f("max_length", c.max_length, length_from(0), "largest number of tokens per text; 0 = no limit");
  f("truncate", c.truncate, any(),
    "what to do with longer texts, of pairs with longer sources: keep the head, keep the tail, or stop with an error");
  f("on_error", c.on_error, any(),
    "what to do with lines or rows that cannot be used: stop, or skip (leave them out and count them)");
  f("tokenizer", c.tokenizer, any(), "how text is divided into tokens; saved: as in another run");
}

inline void validate(const LabelledSourceConfig& c, Problems& problems) {
  if (c.multi_label && c.format == format_of_folders)
    problems.add("multi_label",
                 "with format: folders, a text has the label of its folder; use tsv, csv, jsonl or fasttext");
  if (!c.multi_label && c.label_separator != LabelledSourceConfig::default_label_separator)
    problems.add("label_separator", "needs multi_label: true: otherwise a text has one label");
  if (c.label_separator.find_first_of("\t\r\n") != std::string::npos)
    problems.add("label_separator", "must not contain tabs or line breaks: they end fields and rows");
  const auto is_character = [](const std::string& text) {
    return text.size() == 1 && text[0] > 0 && text[0] != '\n' && text[0] != '\r';
  };
  if (!c.delimiter.empty() && c.delimiter != "tab" && c.delimiter != "\\t" && !is_character(c.delimiter))
    problems.add("delimiter", "expected one ASCII character, such as \";\", or tab");
  if (c.quote != "none" && c.quote != "single" && !is_character(c.quote))
    problems.add("quote", "expected one ASCII character, single, or none");
  if (!c.delimiter.empty() && c.dialect().quote == c.dialect().delimiter)
    problems.add("quote", "is the delimiter, too");
  if (c.table_format() != "csv" && (!c.delimiter.empty() || c.quote != "\""))
    problems.add("delimiter", "delimiter and quote are of csv files: set format: csv");
  const TableFormat* const format = format_named(c.format);
  const bool columns = c.header.value_or(false) || c.label_column || !c.label_columns.empty() ||
                       !c.text_columns.empty() || !c.weight_column.empty() || !c.group_column.empty();
  if (format != nullptr && format->fields == TableFormat::Fields::none && columns)
    problems.add("format", fmt::format("{} lines have no columns: remove header, label_column, label_columns, "
                                       "text_columns, weight_column and group_column; for a table set data.format=auto",
                                       c.format));
  if (c.label_column && !c.label_columns.empty())
    problems.add("label_columns", "give either label_column or label_columns, not both");
  if (c.format == format_of_folders && !c.label_columns.empty())
    problems.add("label_columns", "with format: folders, a text has the label of its folder");
  if (c.format == format_of_folders && !(c.weight_column.empty() && c.group_column.empty()))
    problems.add(c.weight_column.empty() ? "group_column" : "weight_column",
                 "with format: folders, there are no columns");
  if (c.folds == 1) problems.add("folds", "one fold leaves nothing to train on; 10 is usual, 0 = no folds");
  if (c.folds > 0 && !c.valid.empty()) problems.add("folds", "validation examples are those of a fold: remove valid");
  if (c.fold > 0 && c.fold >= c.folds)
    problems.add("fold", c.folds > 0
                             ? fmt::format("folds are counted from 0; the last of {} is {}", c.folds, c.folds - 1)
                             : "needs data.folds, their number");
  const auto texts = static_cast<int64_t>(c.text_columns.size());
  if (c.separator && (texts < 2 || c.format == format_of_folders))
    problems.add("separator", "needs at least two text_columns to separate");
  if (c.separator && c.max_length > 0 && c.max_length < 2 * texts - 1)
    problems.add("max_length",
                 fmt::format("{} columns and their separators need {} tokens or more", texts, 2 * texts - 1));
}

}  // namespace capstan
