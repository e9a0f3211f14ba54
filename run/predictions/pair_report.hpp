// How the completions that a model writes compare with the targets of a split.
#pragma once

#include "run/predictions/completions.hpp"

namespace capstan {

struct PairExample {
  std::string source, target, written;
};

struct PairReport {
  int64_t pairs = 0;
  double exact_match = 0;      // share of completions that are the target, after the tokenizer's normalisation of both
  double log_probability = 0;  // mean of the completions'
  std::vector<PairExample> examples;  // the first few pairs; sources as the model reads them
};

PairReport evaluate_pairs(const SavedRun& run, const std::vector<EvaluationPair>& pairs,
                          const CompletionOptions& options);

}  // namespace capstan
