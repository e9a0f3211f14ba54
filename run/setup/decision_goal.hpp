// What the configuration of a run asks of decisions. tests/cli/training/test_decisions.cpp.
#pragma once

#include <optional>

#include "data/batches/data_source.hpp"
#include "run/setup/run_config.hpp"
#include "train/evaluation/decision.hpp"

namespace capstan {

/// What train.monitor and the weights of classes ask of decisions; none where the likeliest class is given anyway.
/// Throws ConfigError for a class that the data does not have.
std::optional<DecisionGoal> decision_goal(const RunConfig& config, const DataSource& data);

}  // namespace capstan
