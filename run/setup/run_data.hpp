// The data of a run: opened to train or, of a trained run, to evaluate it, with the columns of its tables found; and
// its splits: which one a command uses, and where it comes from. tests/cli/runs/test_tables.cpp and test_eval.cpp.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/batches/data_source.hpp"
#include "run/setup/saved_run.hpp"
#include "train/evaluation/decision.hpp"

namespace capstan {

/// Finds the columns of tables that are not set (find_columns() of the source), and returns a line of what was found,
/// empty where nothing was. Throws ConfigError where columns are in doubt.
std::string find_data_columns(RunConfig& config);
/// The configuration with its columns found, of which a line of the log tells: for commands that train nothing.
RunConfig with_data_columns(RunConfig config);

/// The files that a run is trained and validated with: "data.train: text, more.txt; data.valid: valid.txt".
std::string files_text(const SourceConfig& config);

/// What a new run gives its source.
SourceInputs source_inputs(const RunConfig& config);

/// Reads the data of a new run; seed and batch sizes are the run's.
std::unique_ptr<DataSource> open_data(const RunConfig& config);

/// The split that --split names; throws ConfigError when there is none of that name.
Split split_named(const std::string& name);

/// The split that was asked for; without one the validation data or, with a log line, the test data of a run that has
/// no other.
Split split_to_evaluate(std::optional<Split> asked, const RunConfig& config);

/// What gives data of this type such a split: "data.valid=[FILE] or data.valid_fraction=0.1".
std::string how_to_get_split(Split split, const SourceConfig& config);

/// Throws Error that says what to evaluate instead where the data have no such split.
void require_split(Split split, const RunConfig& config, const DataSource& data);

/// The run with other values of some keys, "data.test=[other.txt]", to evaluate it with. Throws ConfigError for values
/// that the model was not trained for.
SavedRun with_overrides(SavedRun run, const std::vector<std::string>& overrides);

/// Do two identities of data (DataSource::identity()) differ in nothing but the content of the files?
bool has_other_content(const std::string& identity, const std::string& other);

/// The data of a trained run, to read this split; nothing is written. Files that the split is read without need not
/// exist. An Error names the files of the configuration that are not found, and the remedy: their paths are relative to
/// the working folder, which may be another one than when training was started. Where the split is a part of training
/// data of which some are held out, an Error says that others would be than in training, since the content of the files
/// has changed or they are cut in another way.
std::unique_ptr<DataSource> open_saved_data(const SavedRun& run, Split split);

/// What train.monitor and the weights of classes ask of decisions; none where the likeliest class is given anyway.
/// Throws ConfigError for a class that the data does not have.
std::optional<DecisionGoal> decision_goal(const RunConfig& config, const DataSource& data);

}  // namespace capstan
