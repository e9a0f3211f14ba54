// The data of a run: opened for training, or as a saved run had them, and the split that a command uses. Training,
// predictions and the commands call it; tests/cli/runs/test_eval.cpp, test_tables.cpp and test_decisions.cpp hold it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "run/setup/run_config.hpp"
#include "train/evaluation/decision.hpp"

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

/// Finds the columns of tables that are not set (find_columns() of the source), logs them unless they are what was
/// `already_logged`, and returns what was found. Where the run's folder has a checkpoint of training on the same
/// files, the columns are those of that run.
std::string find_data_columns(RunConfig& config, const std::string& already_logged = "");

/// The files that a run is trained and validated with: "data.train: text, more.txt; data.valid: valid.txt".
std::string files_text(const SourceConfig& config);

/// What a new run gives its source.
SourceInputs source_inputs(const RunConfig& config);

/// Reads the data of a new run; seed and batch sizes are the run's.
std::unique_ptr<DataSource> open_data(const RunConfig& config);

struct SavedRun;
/// The run with other values of some keys, "data.test=[other.txt]", to evaluate it with. Throws ConfigError for values
/// that the model was not trained for, and for those that hold out other texts of its training data than then.
SavedRun with_overrides(SavedRun run, const std::vector<std::string>& overrides);

/// The data of a trained run; nothing is written. An Error names the files of the configuration that are not found, and
/// the remedy: their paths are relative to the working folder, which may be another one than when training was started.
/// With `only`, files that this split is read without need not exist; those that do not are left out.
std::unique_ptr<DataSource> open_saved_data(const SavedRun& run, std::optional<Split> only = {});

/// What train.monitor and the weights of classes ask of decisions; none where the likeliest class is given anyway.
/// Throws ConfigError for a class that the data does not have.
std::optional<DecisionGoal> decision_goal(const RunConfig& config, const DataSource& data);

}  // namespace capstan
