// The splits of a run's data: which one a command uses, and where it comes from. tests/cli/runs/test_eval.cpp.
#pragma once

#include <string>

#include "data/batches/data_source.hpp"
#include "run/setup/run_config.hpp"

namespace capstan {

/// The split that --split names; throws ConfigError when there is none of that name.
Split split_named(const std::string& name);

/// The named split; for an empty name the validation data or, with a log line, the test data of a run that has no
/// other.
Split held_out_split(const std::string& name, const DataSource& data);

/// What held_out_split("") will give, as far as the configuration says.
Split default_split(const RunConfig& config);

/// What gives data of this type such a split: "data.valid=[FILE] or data.valid_fraction=0.1".
std::string how_to_get_split(Split split, const SourceConfig& config);

/// Throws Error that says what to evaluate instead where the data have no such split.
void require_split(Split split, const RunConfig& config, const DataSource& data);

/// Is a share of the training data held out for the split?
bool is_held_out(Split split, const SourceConfig& config);

/// The configuration without files that do not exist, where `only` is read without them.
SourceConfig without_missing_files(SourceConfig config, Split only);

}  // namespace capstan
