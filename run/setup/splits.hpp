// The splits of a run's data: which one a command uses, and where it comes from. tests/cli/runs/test_eval.cpp.
#pragma once

#include <optional>
#include <string>

#include "data/batches/data_source.hpp"
#include "run/setup/run_config.hpp"

namespace capstan {

/// The split that --split names; throws ConfigError when there is none of that name.
Split split_named(const std::string& name);

/// The split that was asked for; without one the validation data or, with a log line, the test data of a run that has
/// no other.
Split split_to_evaluate(std::optional<Split> asked, const RunConfig& config);

/// What gives data of this type such a split: "data.valid=[FILE] or data.valid_fraction=0.1".
std::string how_to_get_split(Split split, const SourceConfig& config);

/// Throws Error that says what to evaluate instead where the data have no such split.
void require_split(Split split, const RunConfig& config, const DataSource& data);

/// Is the split a part of training data, of which a share is held out?
bool is_cut(Split split, const SourceConfig& config);

/// The configuration without files that do not exist, where `only` is read without them.
SourceConfig without_missing_files(SourceConfig config, Split only);

}  // namespace capstan
