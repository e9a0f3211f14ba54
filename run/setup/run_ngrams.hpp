// The n-grams that the linear classifier of a run is solved for with. train_run() reads them once, before its session.
// tests/cli/training/test_linear.cpp and test_warm_refusals.cpp.
#pragma once

#include <optional>

#include "data/batches/data_source.hpp"
#include "run/setup/run_config.hpp"
#include "train/linear/ngram_rows.hpp"

namespace capstan {

/// The n-grams of the training data, and what the classifier of train.init_from makes of them. What the model leaves
/// open is set in `config`: with buckets: 0, what a solved run chose. Returns 0, or the signal that ended it. Throws
/// Error unless train.init_from is that of a linear classifier of the same n-grams.
int read_ngrams(RunConfig& config, const DataSource& data, std::optional<NgramRows>& rows);

}  // namespace capstan
