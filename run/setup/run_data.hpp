// The data of a run that is trained: opened, with the columns of its tables found. tests/cli/runs/test_tables.cpp.
#pragma once

#include <memory>
#include <string>

#include "run/setup/run_config.hpp"

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

}  // namespace capstan
