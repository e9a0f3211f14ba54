// Predictions of all texts of an input, as lines of text or as columns of their table: what `capstan predict` writes.
// Scripts read the columns and keys: tests/cli/runs/test_commands.cpp, test_predictions.cpp, test_multi_label.cpp and
// tests/cli/inputs/test_tables.cpp hold them.
#pragma once

#include <functional>
#include <ostream>
#include <string>

#include "run/inputs/text_input.hpp"
#include "run/predictions/predictions.hpp"

namespace capstan {

struct PredictionFormat {
  bool jsonl = false;    // lines of JSON; false: tsv
  int64_t top_k = 0;     // classes, tokens of a blank or completions that are shown; 0: as the kind of model has it
  bool echo = false;     // tsv: also print the text
  bool brief = false;    // tsv without top_k: of many classes only the best three, as a person reads them
  bool errors = false;   // only what differs from the label or the target of the text
  bool explain = false;  // tsv: below each text the n-grams that add most to its labels, or take most from them
};

/// Throws ConfigError for `errors` where a model has no labels, and Error for `explain` as explanation_of().
void check_format(const SavedRun& run, const PredictionFormat& format);

/// Prints the predictions of all texts; `end_batch` is called after each batch. Logs what `errors` found. Throws Error
/// for a label that is no class of the run.
void print_predictions(const SavedRun& run, TextInput& input, const PredictOptions& options,
                       const PredictionFormat& format, std::ostream& out, const std::function<void()>& end_batch);

/// Writes the table that is read to `path`, with the predictions as columns; whole or not at all. Only this shows
/// progress: nothing is printed meanwhile, and a table's size is known.
void write_predicted_table(const std::string& path, const SavedRun& run, TextInput& input,
                           const PredictOptions& options, const PredictionFormat& format);

}  // namespace capstan
