// `sweep:` in a configuration: several runs, one for every combination of some keys' values.
//
//   sweep: {train.lr: [1e-3, 3e-3], seed: [1, 2, 3]}
//
// search.cpp trains them. Names of runs must stay as they are, since a sweep that goes on finds its runs by them.
// tests/run/test_sweep.cpp holds combinations and names.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "run/setup/run_config.hpp"

namespace capstan {

struct Sweep {
  std::filesystem::path folder;  // <folder>/<name>: holds the folders of the runs
  /// The first key varies slowest. A run is named by its values, "lr=3e-3,seed=2", and is in the sweep's folder.
  std::vector<RunConfig> runs;
};

/// Every combination, read and checked; none without a key `sweep`. The values of a key are a list; keys are paths with
/// dots, or maps of keys. Throws ConfigError with the problems of the first run that has any.
std::optional<Sweep> find_sweep(const ConfigOptions& options, const ConfigCheck& check = {});
/// find_sweep(), or a ConfigError.
Sweep load_sweep(const ConfigOptions& options, const ConfigCheck& check = {});

/// The configuration without its key `sweep`, if it has one.
RunConfig load_without_sweep(const ConfigOptions& options, const ConfigCheck& check = {});

}  // namespace capstan
