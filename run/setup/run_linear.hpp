// Solving for the linear classifier of a run.
#pragma once

#include "data/batches/data_source.hpp"
#include "run/setup/run_config.hpp"
#include "train/linear/ngram_rows.hpp"

namespace capstan {

/// The n-grams of the training data, and what the classifier of train.init_from makes of them. What the model leaves
/// open is set in `config`. Throws Error unless train.init_from is that of a linear classifier of the same n-grams.
NgramRows read_ngrams(RunConfig& config, const DataSource& data);

}  // namespace capstan
