// The data of a trained run, for commands that evaluate it. tests/cli/runs/test_eval.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/batches/data_source.hpp"
#include "run/setup/saved_run.hpp"

namespace capstan {

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

}  // namespace capstan
