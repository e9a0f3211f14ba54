// The n-grams that the linear classifier of a run is solved for with. settle() reads them once.
// tests/cli/training/test_linear.cpp and test_warm_refusals.cpp.
#pragma once

#include "data/batches/data_source.hpp"
#include "run/setup/run_config.hpp"
#include "train/linear/ngram_rows.hpp"

namespace capstan {

/// The n-grams of the training data, and what the classifier of train.init_from makes of them. Their config() has what
/// the model leaves open. Throws Stopped at a signal, and Error unless train.init_from is that of a linear classifier
/// of the same n-grams.
NgramRows read_ngrams(const RunConfig& config, const DataSource& data);

}  // namespace capstan
