// The n-grams that speak for each class of a linear classifier, for `capstan report`. tests/cli/runs/test_report.cpp.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "data/batches/labelled_texts.hpp"
#include "run/setup/saved_run.hpp"

namespace capstan {

/// The n-grams of a class with the largest weights, the largest first.
struct ClassNgrams {
  std::string name;
  std::vector<std::pair<std::string, float>> ngrams;
};

/// A model stores hashes of n-grams, so their names are looked for in the training texts: each is the one that the
/// first texts with such a hash agree on. Weights whose n-grams are not there are left out.
std::vector<ClassNgrams> ngram_view(const SavedRun& run, const LabelledTexts& training);

}  // namespace capstan
