// The length of a run in steps, from its configuration.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "data/batches/batcher.hpp"
#include "train/runs/config.hpp"

namespace capstan {

/// Steps after which the run ends; 0 = not known.
int64_t total_steps(const BatchSource& source, const TrainConfig& config);

/// A warning for a run with tables that are emptied at every epoch (train/optimizers/fresh_tables.hpp) and that ends within
/// an epoch after the second, or in the first half of that, when the tables have seen little. Nothing for a run that ends
/// in the first epoch, or whose end is not known.
std::optional<std::string> fresh_tables_warning(const BatchSource& source, const TrainConfig& config);

}  // namespace capstan
