// What is checked before training begins, for one message with all problems. tests/cli/inputs/test_bad_input.cpp.
#pragma once

#include "run/setup/run_config.hpp"
#include "train/ranks/communicator.hpp"

namespace capstan {

/// Adds a problem for every file or folder of the data that does not exist.
void check_data_files(const RunConfig& config, Problems& problems);
/// As check_data_files(), and adds a problem for what the configuration needs and this machine does not have:
/// instructions for train.precision and, unless `force`, the memory of one of these ranks.
void check_trainable(const RunConfig& config, bool force, const Communicator& ranks, Problems& problems);
/// check_trainable() for a run that is not one of a sweep or a search: its folder must not be that of a search.
void check_single_run(const RunConfig& config, bool force, const Communicator& ranks, Problems& problems);

}  // namespace capstan
