// What a model says about texts, one after the other.
#pragma once

#include <memory>
#include <string>

#include "run/predictions/completions.hpp"
#include "run/predictions/text_input.hpp"

namespace capstan {

struct PredictOptions {
  std::string run, format = "tsv", blank = "<mask>";
  TextInputOptions input;
  int64_t batch_size = 64;
  int64_t top_k = 0;     // classes, tokens of a blank or completions; 0: as the kind of model has it
  bool echo = false;     // print the text, too
  bool errors = false;   // only what differs from the label
  double threshold = 0;  // multi-label: probability from which a text has a label; 0: the run's
  CompletionOptions completions;
};

/// Prints predictions to standard output, in the order of the texts.
class Predictor {
 public:
  virtual ~Predictor() = default;
  /// The line that names the columns, where there is one.
  virtual void print_header() {}
  /// Prints once a batch is full. Throws Error for a text that cannot be used, after printing what precedes it.
  virtual void add(InputText text) = 0;
  /// Prints what has been added so far.
  virtual void flush() = 0;
  /// At the end of the texts: what --errors found, in one line for the log; empty otherwise.
  virtual std::string summary() const { return ""; }
};

/// For a classifier, a masked language model or a language model of pairs. `run` and `options` must outlive it. Throws
/// Error for another kind of model, and ConfigError for options that it does not have.
std::unique_ptr<Predictor> make_predictor(const SavedRun& run, const PredictOptions& options);
std::unique_ptr<Predictor> make_label_predictor(const SavedRun& run, const PredictOptions& options);
std::unique_ptr<Predictor> make_blank_predictor(const SavedRun& run, const PredictOptions& options);
std::unique_ptr<Predictor> make_pair_predictor(const SavedRun& run, const PredictOptions& options);

/// A text as a field of tsv: tabs and line ends become spaces.
std::string tsv_field(std::string text);
/// Ends what --errors has to say: "3 of 10 texts (30.00 %) are predicted wrongly".
std::string errors_text(int64_t wrong, int64_t all);

}  // namespace capstan
