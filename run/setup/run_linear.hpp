// Solving for the linear classifier of a run (model.linear).
#pragma once

#include <functional>
#include <optional>

#include "data/batches/data_source.hpp"
#include "run/setup/run_config.hpp"
#include "train/linear/ngram_rows.hpp"

namespace capstan {

/// Is the model of the run a linear classifier?
bool is_linear(const RunConfig& config);

/// The n-grams of the training data, and what the classifier of train.init_from makes of them. What model.linear leaves
/// open is set in `config`. Throws Error unless train.init_from is a run whose model.linear has the same n-grams.
NgramRows read_ngrams(RunConfig& config, const DataSource& data);

/// `config` with what model.linear leaves open taken from `saved`, the configuration of the same run folder.
RunConfig with_choices_of(const RunConfig& saved, RunConfig config);

}  // namespace capstan
