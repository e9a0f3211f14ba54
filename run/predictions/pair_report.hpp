// How the completions that a model writes compare with the targets of a split of pairs, for `capstan eval`.
// tests/cli/runs/test_eval.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/batches/data_source.hpp"
#include "run/predictions/pair_completions.hpp"

namespace capstan {

struct PairExample {
  std::string source, target, written;  // written: what the model wrote after the source
};

struct PairReport {
  int64_t pairs = 0;
  double exact_match = 0;      // share of completions that are the target, after the tokenizer's normalisation of both
  double log_probability = 0;  // mean over the completions, each the sum over its tokens
  std::vector<PairExample> examples;  // the first few pairs; sources as the model reads them
};

PairReport evaluate_pairs(const SavedRun& run, const std::vector<EvaluationPair>& pairs, const PairOptions& options);

}  // namespace capstan
