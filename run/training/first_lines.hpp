// What the log of a run says before its first step of machine, data and model. train_run() logs it.
// tests/cli/training/test_precision.cpp and tests/cli/inputs/test_log.cpp.
#pragma once

#include <string>
#include <vector>

#include "data/batches/data_source.hpp"
#include "run/setup/run_model.hpp"

namespace capstan {

/// Machine, data and model.
std::vector<std::string> first_lines(const RunConfig& config, const DataSource& data, const RunModel& model);
/// Warnings of machine, data and keys, without that of unequal classes where the configuration shows that it was
/// heeded.
std::vector<std::string> first_warnings(const RunConfig& config, const DataSource& data);

}  // namespace capstan
