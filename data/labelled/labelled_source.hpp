// Labelled texts from TSV, CSV and JSONL files, or from one folder of texts per class, for classifiers.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/config/schema.hpp"
#include "data/batches/data_source.hpp"
#include "data/batches/example_set.hpp"
#include "data/labelled/table_reader.hpp"
#include "data/tokenizers/tokenizer_kinds.hpp"

namespace capstan {

struct LabelledSourceConfig {
  static constexpr const char* type_name = "labelled";
  std::vector<std::string> train, valid, test;
  TableFormat format = TableFormat::by_name;
  bool header = false;
  std::optional<std::string> label_column;
  std::vector<std::string> text_columns;
  bool separator = false;
  std::vector<std::string> classes;
  std::string classes_file;
  int64_t first_label = 0;
  double valid_fraction = 0.1;
  int64_t split_seed = 0;
  int64_t max_length = 512;
  Truncate truncate = Truncate::head;
  bool skip_empty = false;
  OnError on_error = OnError::stop;
  TokenizerConfig tokenizer = WordTokenizerConfig{WordSplit::words, true, 30000, 2, ""};
};
template <class Fields>
void describe(Fields& f, LabelledSourceConfig& c) {
  f("train", c.train, not_empty(),
    "files with one labelled text per row; .gz and .zst are unpacked. With format: folders, folders that hold one per "
    "class");
  f("valid", c.valid, any(),
    "the same for validation; without it, valid_fraction of the training examples is held out");
  f("test", c.test, any(), "the same for the test");
  f("format", c.format, any(),
    "tsv (no quoting), csv (RFC 4180) or jsonl; auto: by the file's name; folders: each file is a text, its "
    "class is its folder");
  f("header", c.header, any(), "the first row of tsv and csv names the columns");
  f("label_column", c.label_column, any(),
    "column of the label: number from 1, name in the header, or key; usually 1, or \"label\" in jsonl");
  f("text_columns", c.text_columns, any(),
    "the same for the text; several are joined by a blank; usually -1 (the last), or \"text\" in jsonl");
  f("separator", c.separator, any(),
    "text pairs: a separator token goes between the text_columns, instead of a blank; lines for capstan predict have "
    "tabs there");
  f("classes", c.classes, any(),
    "names of the classes; labels may be these or their numbers. Without names, those of the training data. "
    "With format: folders, other folders are left out");
  f("classes_file", c.classes_file, any(), "the same from a file with one name per line");
  f("first_label", c.first_label, at_least(0),
    "the label of the first class in `classes`: 1 in the CSV files of AG News, DBpedia and Yelp");
  f("valid_fraction", c.valid_fraction, between_below(0, 1), "share of every class held out for validation");
  f("split_seed", c.split_seed, at_least(0), "which examples are held out");
  f("max_length", c.max_length, at_least(0), "tokens per text at most; 0 = any number");
  f("truncate", c.truncate, any(), "for a longer text: keep the head, keep the tail, or stop with an error");
  f("skip_empty", c.skip_empty, any(), "leave rows without text out instead of stopping at them");
  f("on_error", c.on_error, any(),
    "for unusable rows (columns, label, JSON, quotes, UTF-8, empty or too long): stop, or skip (leave them "
    "out and count them)");
  f("tokenizer", c.tokenizer, any(), "byte, char, word or sentencepiece");
}

inline void validate(const LabelledSourceConfig& c, Problems& problems) {
  if (!c.classes.empty() && !c.classes_file.empty())
    problems.add("classes_file", "give either classes or classes_file, not both");
  const auto columns = static_cast<int64_t>(c.text_columns.size());
  if (c.separator && (columns < 2 || c.format == TableFormat::folders))
    problems.add("separator", "needs at least two text_columns to separate");
  if (c.separator && c.max_length > 0 && c.max_length < 2 * columns - 1)
    problems.add("max_length",
                 fmt::format("{} columns and their separators need {} tokens or more", columns, 2 * columns - 1));
}

/// How its texts become examples.
TextRule text_rule(const LabelledSourceConfig& config);
SourceFacts facts(const LabelledSourceConfig& config);
std::unique_ptr<DataSource> make_source(const LabelledSourceConfig& config, const SourceInputs& inputs);

/// Reads, splits and tokenises. `tokenizer`: that of an earlier run (whose classes must be in the config); otherwise
/// one is made from the training texts. Throws Error naming file, line and remedy.
ClassificationData load_labelled(const LabelledSourceConfig& config,
                                 std::shared_ptr<const Tokenizer> tokenizer = nullptr);

}  // namespace capstan
