// What a language model that was trained on pairs writes after the source of a pair: for predict, eval and the server,
// and how it compares with the targets of a split. Results do not depend on how prompts are grouped, on threads or on
// company; tests/cli/runs/test_predictions.cpp and tests/serve/test_company.cpp hold it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/batches/data_source.hpp"
#include "run/setup/saved_run.hpp"

namespace capstan {

struct PredictOptions;  // run/predictions/predictions.hpp

struct PairCompletion {
  std::string text;
  std::vector<int32_t> tokens;
  double log_probability = 0;  // ln p of the tokens and, if finished, of the end
  bool finished = false;       // the model ended the text; false: it was cut at the largest number of tokens
};

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
