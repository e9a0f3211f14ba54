// `sweep:` in a configuration: several runs, one for every combination of some keys' values.
//
//   sweep: {train.lr: [1e-3, 3e-3], seed: [1, 2, 3]}
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "run/setup/run_config.hpp"

namespace capstan {

/// Adds what is wrong with a configuration for one command only.
using ConfigCheck = std::function<void(const RunConfig&, Problems&)>;

struct Sweep {
  std::filesystem::path folder;  // <folder>/<name>: holds the folders of the runs
  /// The first key varies slowest. A run is named by its values, "lr=3e-3,seed=2", and is in the sweep's folder.
  std::vector<RunConfig> runs;
};

/// Whether the files or the overrides have a key `sweep`. Throws ConfigError when they cannot be read.
bool has_sweep(const ConfigOptions& options);

/// Every combination, read and checked. The values of a key are a list; keys are paths with dots, or maps of keys.
/// Throws one ConfigError with all problems of all runs, each problem once; it names the run unless all have it.
Sweep load_sweep(const ConfigOptions& options, const ConfigCheck& check = {});

/// The configuration without its key `sweep`, if it has one.
RunConfig load_without_sweep(const ConfigOptions& options, const ConfigCheck& check = {});

/// The configuration of a single run. Throws ConfigError also when it has a key `sweep`.
RunConfig load_run(const ConfigOptions& options, const ConfigCheck& check = {});

}  // namespace capstan
