// Predictions as lines of text: what `capstan predict` prints. Scripts read the columns and keys:
// tests/cli/runs/test_commands.cpp, test_predictions.cpp and test_multi_label.cpp hold them.
#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "data/formats/table_format.hpp"
#include "run/inputs/input_text.hpp"
#include "run/predictions/predictions.hpp"

namespace capstan {

class ClassNames;

struct PredictionFormat {
  bool jsonl = false;   // lines of JSON; false: tsv
  int64_t top_k = 0;    // classes, tokens of a blank or completions that are shown; 0: as the kind of model has it
  bool echo = false;    // tsv: also print the text
  bool brief = false;   // tsv without top_k: of many classes only the best three, as a person reads them
  bool errors = false;  // only what differs from the label or the target of the text
};

class PredictionWriter {
 public:
  /// `run` and `out` must outlive it. Throws ConfigError for `errors` where a model has no labels.
  PredictionWriter(const SavedRun& run, const PredictionFormat& format, std::ostream& out);
  ~PredictionWriter();

  /// The line that names the columns, where there is one.
  void write_header();
  /// Writes a prediction; returns false where `errors` leaves it out. Throws Error for a label that is no class of the
  /// run.
  bool write(const InputText& text, const Prediction& prediction);
  /// The columns of a prediction in a table.
  std::vector<AddedField> fields(const Prediction& prediction) const;
  /// The columns of fields() with any values, for a table that has no row to tell them.
  std::vector<AddedField> columns() const;
  /// What `errors` found, in one line: "3 of 10 texts (30.00 %) are predicted wrongly". Empty without `errors`.
  std::string summary() const;

 private:
  std::vector<std::string> true_labels(const InputText& text) const;
  std::vector<size_t> likeliest(const Prediction& prediction) const;
  bool write_labels(const InputText& text, const Prediction& prediction);
  std::string labels_json(const InputText& text, const Prediction& prediction,
                          const std::vector<std::string>& truth) const;
  std::string labels_tsv(const InputText& text, const Prediction& prediction,
                         const std::vector<std::string>& truth) const;
  void write_blanks(const InputText& text, const Prediction& prediction);
  bool write_completions(const InputText& text, const Prediction& prediction);

  const SavedRun& run_;
  PredictionFormat format_;
  std::ostream& out_;
  std::unique_ptr<ClassNames> classes_;  // with `errors`
  bool multi_label_;
  bool says_labels_;                  // tsv: what is predicted comes before the probabilities
  std::string separator_;             // of several labels
  int64_t compared_ = 0, wrong_ = 0;  // texts that have a label or target, and those predicted wrongly
};

}  // namespace capstan
