// Pairs of texts, a source and a target, for language models: the source `pairs` (data/batches/data_source.hpp says
// what a source brings) and its configuration. Rows are read as in data/labelled, with the target as a label that is a
// text. Fingerprints and held-out pairs are saved by runs and must not change: tests/data/test_pairs.cpp,
// test_data_source.cpp.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config/schema.hpp"
#include "data/batches/data_source.hpp"
#include "data/batches/text_example.hpp"
#include "data/files/bad_rows.hpp"
#include "data/formats/table_format.hpp"
#include "data/tokenizers/tokenizer_kinds.hpp"

namespace capstan {

struct PairSourceConfig {
  static constexpr const char* type_name = "pairs";
  std::vector<std::string> train, valid, test;
  std::optional<bool> header;
  std::optional<std::string> source_column, target_column;
  double valid_fraction = 0.1;
  int64_t max_length = 512, max_source = 256;
  Truncate truncate = Truncate::head;
  OnError on_error = OnError::stop;
  TokenizerConfig tokenizer = WordTokenizerConfig{WordSplit::words, true, 30000, 2};
};
template <class Fields>
void describe(Fields& f, PairSourceConfig& c) {
  f("train", c.train, not_empty(), "files with one pair per row");
  f("valid", c.valid, any(), "the same for validation; if empty, valid_fraction of the training data is held out");
  f("test", c.test, any(), "the same for the test set");
  f("header", c.header, any(), "the first row of tsv and csv files names the columns; null = found by its names");
  f("source_column", c.source_column, any(),
    "column of the source (the prompt), as label_column; null = found, or 1, or \"prompt\" in jsonl");
  f("target_column", c.target_column, any(),
    "column of the target (the completion); null = found, or 2, or \"completion\" in jsonl");
  f("valid_fraction", c.valid_fraction, between_below(0, 1),
    "share of the training data held out for validation; with one label per text, of every class");
  f("max_length", c.max_length, length_from(3),
    "tokens per row of a batch, into which pairs are packed as documents. Longer pairs are unusable: targets are never "
    "cut");
  f("max_source", c.max_source, length_from(1), "largest number of tokens of a source; truncate cuts longer ones");
  f("truncate", c.truncate, any(),
    "what to do with longer texts, of pairs with longer sources: keep the head, keep the tail, or stop with an error");
  f("on_error", c.on_error, any(),
    "what to do with lines or rows that cannot be used: stop, or skip (leave them out and count them)");
  f("tokenizer", c.tokenizer, any(), "how text is divided into tokens; saved: as in another run");
}

inline void validate(const PairSourceConfig& c, Problems& problems) {
  if (c.max_source > c.max_length - 3)
    problems.add("max_source", "must be at least 3 less than max_length: a start, a separator and a target follow it");
}

SourceFacts facts(const PairSourceConfig& config);
std::unique_ptr<DataSource> make_source(const PairSourceConfig& config, const SourceInputs& inputs);
/// Bad rows are errors of the report. Throws Error when too little is left to count.
DataReport check_source(const PairSourceConfig& config, const SourceInputs& inputs);

/// Sets header and columns where they are unset and the names or keys of the first training table say which they are:
/// those of the configuration, or such as "question" and "answer". Returns what was found, in one line; empty when
/// nothing was.
std::string find_columns(PairSourceConfig& config);

/// The columns of a file of this format, for the source and for --input of commands. `targets`: its rows have targets.
ColumnChoice pair_columns(const PairSourceConfig& config, const TableFormat& format, bool targets = true);

}  // namespace capstan
