// The data of a run that is trained: opened, with the columns of its tables found. tests/cli/runs/test_tables.cpp.
#pragma once

#include <memory>
#include <string>

#include "run/setup/run_config.hpp"

namespace capstan {

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

}  // namespace capstan
