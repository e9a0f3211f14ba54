// How long a run is, in steps, by its configuration.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "data/batches/batcher.hpp"
#include "train/runs/config.hpp"

namespace capstan {

/// Steps after which the run ends; 0 = not known.
int64_t total_steps(const BatchSource& source, const TrainConfig& config);

/// What to say to a user whose run ends early in an epoch though its model has tables that are learnt anew in each
/// (train/optimizers/fresh_tables.hpp): they would know little. Nothing when the run ends late in an epoch or in its first, or
/// when its end is not known.
std::optional<std::string> warn_of_fresh_tables(const BatchSource& source, const TrainConfig& config);

}  // namespace capstan
