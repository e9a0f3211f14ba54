// The data of a trained run, for commands that evaluate it. tests/cli/runs/test_eval.cpp.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/batches/data_source.hpp"
#include "run/setup/saved_run.hpp"

namespace capstan {

/// The run with other values of some keys, "data.test=[other.txt]", to evaluate it with. Throws ConfigError for values
/// that the model was not trained for, and for those that hold out other texts of its training data than then.
SavedRun with_overrides(SavedRun run, const std::vector<std::string>& overrides);

/// The data of a trained run; nothing is written. An Error names the files of the configuration that are not found, and
/// the remedy: their paths are relative to the working folder, which may be another one than when training was started.
/// With `only`, files that this split is read without need not exist; those that do not are left out.
std::unique_ptr<DataSource> open_saved_data(const SavedRun& run, std::optional<Split> only = {});

}  // namespace capstan
