// `sweep:` in a configuration: several runs, one for every combination of some keys' values.
//
//   sweep: {train.lr: [1e-3, 3e-3], seed: [1, 2, 3]}
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "apps/commands/options.hpp"
#include "apps/runs/run_config.hpp"

namespace capstan {

/// Adds what is wrong with a configuration for one command only.
using ConfigCheck = std::function<void(const RunConfig&, Problems&)>;

struct Sweep {
  std::filesystem::path folder;  // <folder>/<name>: holds the folders of the runs
  /// The first key varies slowest. A run's name says its values, "lr=3e-3,seed=2"; its folder is the sweep's.
  std::vector<RunConfig> runs;
};

/// Have the files or the overrides a key `sweep`? Throws ConfigError when they cannot be read.
bool has_sweep(const ConfigOptions& options);

/// Every combination, each read and checked. The values of a key are a list; keys are paths with dots, or maps of keys.
/// Throws one ConfigError with everything that is wrong in any of them, each problem once, with the run it is found in
/// unless all have it.
Sweep load_sweep(const ConfigOptions& options, const ConfigCheck& check = {});

/// The configuration of one run. Throws ConfigError also when there is a sweep, and says what it is for.
RunConfig load_run(const ConfigOptions& options, const ConfigCheck& check = {});

}  // namespace capstan
