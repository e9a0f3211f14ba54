// What a model says about texts: the labels of a classifier, the tokens that a masked language model finds for blanks,
// and what a language model of pairs writes after a source. Run, the commands and the server call it.
// tests/run/test_run.cpp and tests/cli/runs/test_predictions.cpp hold the results.
#pragma once

#include <string>
#include <vector>

#include "data/batches/data_source.hpp"
#include "models/linear_classifier.hpp"
#include "run/inputs/input_text.hpp"
#include "run/setup/saved_run.hpp"

namespace capstan {

/// A class, or a token of a blank.
struct Guess {
  std::string text;
  double probability = 0;
  // Of a blank:
  int32_t token = -1;
  std::string space = "";  // written between the token and the text in front, unless that ends in white space
};

/// What a language model that was trained on pairs writes after the source of a pair.
struct PairCompletion {
  std::string text;
  std::vector<int32_t> tokens;
  double log_probability = 0;  // ln p of the tokens and, if finished, of the end
  bool finished = false;       // the model ended the text; false: it was cut at the largest number of tokens
};

struct Prediction {
  // Of a classifier:
  std::vector<Guess> labels;         // the class by the run's rule; of multi-label data those that reach the threshold
  std::vector<float> probabilities;  // one per class, in their order
  // Of a masked language model:
  std::string filled;                      // the text with the likeliest token in every blank
  std::vector<std::vector<Guess>> blanks;  // likeliest tokens per blank
  // Of a language model that was trained on pairs:
  std::vector<PairCompletion> completions;  // the best first
};

/// The label of a text that is in none of the classes, as PredictOptions::reject decides.
constexpr const char* no_class = "none";

struct PredictOptions {
  int64_t batch_size = 64;       // texts that are computed together
  double threshold = 0;          // multi-label: probability from which a text has a label; 0: the run's
  double reject = 0;             // one label: below this probability of the likeliest class the label is no_class
  std::string blank = "<mask>";  // what marks a blank
  int64_t top_k = 1;             // guesses for each blank, or completions, the best of the beam
  // Of pairs:
  int64_t beam = 1;           // above 1: beam search of this width; 1: always the likeliest token
  double length_penalty = 0;  // beam search compares texts of n tokens by ln p / n^length_penalty
  int64_t max_tokens = 0;     // new tokens at most; 0: what data.max_length leaves
};

/// Throws ConfigError for options that the run's model does not have, and Error for a model that predicts nothing.
void check_predictions(const SavedRun& run, const PredictOptions& options);

/// A prediction for each text. Throws TextError for a text that cannot be used, and what check_predictions() throws.
std::vector<Prediction> predictions_of(const SavedRun& run, const std::vector<InputText>& texts,
                                       const PredictOptions& options = {});
/// For each text, the C numbers of which a classifier makes the probabilities of its classes. Throws Error for other
/// models, and TextError.
std::vector<std::vector<float>> decision_values_of(const SavedRun& run, const std::vector<InputText>& texts);
/// Throws Error unless explanation_of() can explain decisions of this run: its model must be a linear classifier.
void check_explanations(const SavedRun& run);
/// What the n-grams of a text add to the decision values of a linear classifier. Throws Error for other models, and
/// for a text that cannot be used.
TextExplanation explanation_of(const SavedRun& run, const InputText& text);
/// The `most` n-grams that change the decision value of class `column` most, the strongest first, each with what it
/// adds (below 0: takes away). Where `constant` is not empty, the bias is listed among them by that name.
std::vector<std::pair<double, std::string>> strongest_ngrams(const TextExplanation& explanation, size_t column,
                                                             size_t most, const std::string& constant = "");
/// predictions_of() for a batch of texts with blanks.
std::vector<Prediction> fill_blanks(const SavedRun& run, const std::vector<InputText>& texts,
                                    const PredictOptions& options);

/// Throws ConfigError for options that contradict each other.
void check_options(const PredictOptions& options);

/// Throws ConfigError for options other than the default where the run completes nothing, naming the first.
void refuse_options_without_pairs(const SavedRun& run, const PredictOptions& options);

/// The completions of every prompt, the best first. Prompts run in parallel. Throws TextError for a prompt for which
/// the model computes what is not finite.
std::vector<std::vector<PairCompletion>> complete(const SavedRun& run, const std::vector<std::vector<int32_t>>& prompts,
                                                  const PredictOptions& options);

struct PairExample {
  std::string source, target, written;  // written: what the model wrote after the source
};

struct PairReport {
  int64_t pairs = 0;
  double exact_match = 0;      // share of completions that are the target, after the tokenizer's normalisation of both
  double log_probability = 0;  // mean over the completions, each the sum over its tokens
  std::vector<PairExample> examples;  // the first few pairs; sources as the model reads them
};

/// Some thousands are completed at a time.
PairReport evaluate_pairs(const SavedRun& run, const std::vector<EvaluationPair>& pairs, const PredictOptions& options);

}  // namespace capstan
