// The configuration that a user gives, in files and values, of a single run. train_run, sweep and the commands read it
// here; what a run has written is read by saved_config.hpp.
#pragma once

#include <functional>
#include <string>

#include "run/setup/run_config.hpp"
#include "run/yaml/config.hpp"

namespace capstan {

/// Adds what is wrong with a configuration for one command only.
using ConfigCheck = std::function<void(const RunConfig&, Problems&)>;

/// The key of which `capstan sweep` makes many configurations (run/training/sweep.hpp).
constexpr const char* sweep_key = "sweep";

/// The configuration of a single run. Throws ConfigError also when it has a key `sweep`.
RunConfig load_run(const ConfigOptions& options, const ConfigCheck& check = {});

/// The files and values that a user gives, over the defaults; not checked. Throws ConfigError when they cannot be read.
ConfigNode load_config_tree(const ConfigOptions& options, ProblemList& problems);
/// The configuration of such a tree, checked. `problems`: those already found in the tree.
RunConfig read_run(const ConfigNode& tree, ProblemList problems, const ConfigCheck& check);

}  // namespace capstan
