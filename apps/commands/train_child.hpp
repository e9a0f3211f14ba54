// A training run in a process of its own, for the commands that train several.
#pragma once

#include <functional>

#include "run/training/child_run.hpp"
#include "run/training/train_run.hpp"

namespace capstan {

/// The exit code of a command that trained a run.
int exit_code_of(const TrainResult& result);

/// Trains the run as run_in_child() does; errors are messages on stderr and exit codes, as those of a command are.
Ending train_in_child(const RunConfig& config, const TrainRunOptions& options, const std::function<bool()>& stop);

}  // namespace capstan
