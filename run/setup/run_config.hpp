// The whole configuration of a run, which its config.yaml records, and how it is read: as a user gives it, or as a run
// has saved it. Nearly all of run/ includes it. Runs of version 0.4 must stay readable: a key that is added needs a
// default that changes nothing, and one that is renamed or removed raises run_format (train/checkpoints/run_state.hpp;
// tests/cli/runs/test_old_runs.cpp).
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/config/schema.hpp"
#include "data/sources/data_config.hpp"
#include "models/task_config.hpp"
#include "run/yaml/config.hpp"
#include "train/configuration/train_config.hpp"

namespace capstan {

/// The content of a config.yaml. Its copies and moves are compiled once, in run_config.cpp: each source that copies a
/// configuration would otherwise compile those of all of its parts.
struct RunConfig {
  RunConfig();
  RunConfig(const RunConfig&);
  RunConfig(RunConfig&&) noexcept;
  RunConfig& operator=(const RunConfig&);
  RunConfig& operator=(RunConfig&&) noexcept;
  ~RunConfig();

  std::string name;
  std::string folder = "runs";
  int64_t seed = 1;
  int64_t threads = 0;
  SourceConfig data;
  TaskConfig model;
  TrainConfig train;
};

template <class Fields>
void describe(Fields& f, RunConfig& c) {
  f("name", c.name, not_empty(),
    "name of the run; its files are in <folder>/<name>; may have several parts: first/second");
  f("folder", c.folder, not_empty(), "folder of all runs");
  f("seed", c.seed, at_least(0), "seed of the initial weights, the order of examples and dropout");
  f("threads", c.threads, between(0, 1024),
    "number of threads; 0 = one per physical core, or as many as the quota of a container allows");
  f("data", c.data, any(), "data to train and evaluate on");
  f("model", c.model, any(), "model to train");
  f("train", c.train, any(), "settings of training");
}

/// What all models with blocks have in common. Throws Error when this one has none.
ModelConfig& model_of(RunConfig& config);
const ModelConfig& model_of(const RunConfig& config);

/// The folder of the run that this configuration describes: <folder>/<name>.
std::filesystem::path folder_of(const RunConfig& config);

/// Rules that span data, model and training.
void validate(const RunConfig& config, Problems& problems);

/// Where a program's user says what the configuration is: the files that --config names, and the values of --set.
struct ConfigOptions {
  std::vector<std::string> files, overrides;
};
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

/// config.yaml of a run's folder, with overrides ("path.to.key=value"); keys that were added since have their defaults.
/// Throws Error where there is none, ConfigError, and NewerFile if the run is of a version that this one does not read.
RunConfig load_run_config(const std::filesystem::path& folder, const std::vector<std::string>& overrides = {});
/// Why there is no run in this folder, and what was probably meant: a run whose name is nearest, one of those in the
/// folder, the best run of a search.
std::string no_run(const std::filesystem::path& folder);

// Copying, reading, writing and documenting all of these structs is much code: it is compiled in run_config.cpp only.
extern template ConfigNode to_node(const RunConfig&);
extern template ConfigNode to_node(const TaskConfig&);
extern template ConfigNode to_node(const MixerConfig&);
extern template void read_value(const ConfigNode&, const Location&, const Constraint&, RunConfig&);
extern template std::vector<TableRow> config_rows(RunConfig);

}  // namespace capstan
