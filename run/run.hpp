// Trained models in a program: open a run folder and ask its model, or train another.
//
//   const capstan::Run run = capstan::Run::open("runs/quickstart-lm");
//   const std::string text = run.generate("The ").front().text;
//
// All methods throw Error: ConfigError for options that the run does not have, TextError for one of several texts that
// cannot be used. An error that the kind of model is the reason for names the kind that is needed. Messages and the
// lines of a training go to standard error, or where set_log_sink() says (core/io/log.hpp).
//
// Programs (examples/), the Python package and several commands use it. tests/run/test_run.cpp trains, opens and asks
// every kind of model.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/batches/data_source.hpp"
#include "run/predictions/completions.hpp"
#include "run/predictions/eval_report.hpp"
#include "run/predictions/predictions.hpp"
#include "run/predictions/text_scores.hpp"
#include "run/setup/run_config.hpp"
#include "run/setup/run_data.hpp"
#include "run/summaries/run_record.hpp"
#include "run/training/train_run.hpp"

namespace capstan {

/// A run folder that is opened: config, classes, tokenizer, model and state are those of SavedRun, and here is what can
/// be asked of them. Copies share model and tokenizer. Computing changes nothing in it.
class Run : public SavedRun {
 public:
  /// `folder`: a run folder (its best checkpoint, else the last) or the folder of one checkpoint. `overrides`: keys of
  /// its data with other values, "data.test=[other.txt]". From here on the process uses as many threads as the run's
  /// key `threads` says.
  static Run open(const std::filesystem::path& folder, const std::vector<std::string>& overrides = {});

  /// What a classifier, a masked language model or a language model of pairs says about texts.
  std::vector<Prediction> predict(const std::vector<InputText>& texts, const PredictOptions& options = {}) const {
    return predictions_of(*this, texts, options);
  }
  /// The values from which a classifier computes the probabilities of its classes.
  std::vector<std::vector<float>> decision_values(const std::vector<InputText>& texts) const {
    return decision_values_of(*this, texts);
  }
  /// Of a linear classifier, what each n-gram of a text adds to its decision values.
  TextExplanation explain(const InputText& text) const { return explanation_of(*this, text); }
  /// How likely a language model finds texts.
  std::vector<TextScore> score(const std::vector<InputText>& texts) const { return scores_of(*this, texts); }
  /// Vectors of embedding_size() elements, of any model with blocks.
  std::vector<std::vector<float>> embed(const std::vector<InputText>& texts) const;
  int64_t embedding_size() const;
  /// What a language model writes after a text.
  std::vector<Completion> generate(const InputText& text, const CompletionOptions& options = {}) const {
    return completions_of(*this, text, options);
  }
  /// Loss, accuracy and further figures on a part of the run's data; none: the validation data or, with a line in the
  /// log, the test data of a run that has no other. Files that only other splits need may be missing. `completions`:
  /// how those of pairs are written. `adapting`: how a language model learns from what it has scored, for further
  /// figures.
  EvalReport evaluate(std::optional<Split> split = {}, const PredictOptions& completions = {},
                      const AdaptOptions& adapting = {}) const;

  /// This run with a copy of its model whose matrices, the embedding included, are rounded as `format` stores them for
  /// decoding: to measure what rounding costs in accuracy. Throws Error for a model without blocks.
  Run rounded(DecodeWeights format) const;

  /// Its data, to read this split, as open_saved_data() says.
  std::unique_ptr<DataSource> data(Split split) const { return open_saved_data(*this, split); }
  /// The figures of its training: what metrics.jsonl and train.log say.
  RunRecord record() const { return read_record(folder); }

 private:
  explicit Run(SavedRun saved) : SavedRun(std::move(saved)) {}
};

/// A signal (SIGINT, SIGTERM or SIGUSR1) ended a training. The run is saved, and the same call continues it.
class Interrupted : public Error {
 public:
  using Error::Error;
};

/// Trains the run `<folder>/<name>` to its end, from its last checkpoint where it has one, and opens it.
Run train(const RunConfig& config, const TrainRunOptions& options = {});
/// Trains a run from YAML files and overrides: train({{"lm.yaml"}, {"data.train=[book.txt]", "train.steps=500"}}).
Run train(const ConfigOptions& config, const TrainRunOptions& options = {});

}  // namespace capstan
