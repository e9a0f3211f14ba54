// The data of a run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "run/setup/run_config.hpp"

namespace capstan {

/// The split that --split names; throws ConfigError when there is none of that name.
Split split_named(const std::string& name);

/// What a new run gives its source.
SourceInputs source_inputs(const RunConfig& config);

/// Reads the data; seed and batch sizes are the run's. `tokenizer` and `classes`: those of an earlier run, null and
/// empty for a new one.
std::unique_ptr<DataSource> open_data(const RunConfig& config, std::shared_ptr<const Tokenizer> tokenizer = nullptr,
                                      const std::vector<std::string>& classes = {});

struct SavedRun;
/// The run with other values of some keys, "data.test=[other.txt]", to evaluate it with. Throws ConfigError for values that
/// the model was not trained for.
SavedRun with_overrides(SavedRun run, const std::vector<std::string>& overrides);

/// The data of a trained run. An Error names the files of the configuration that are not found, and the remedy: their
/// paths are relative to the working folder, which may be another one than when training was started.
std::unique_ptr<DataSource> open_saved_data(const SavedRun& run);

}  // namespace capstan
