// Reading the configuration of a run: from the files and values that a user gives, and from the folder of a run, which
// an earlier version may have written (run/yaml/moved_keys.hpp).
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "run/setup/run_config.hpp"
#include "run/yaml/config.hpp"
#include "run/yaml/config_source.hpp"

namespace capstan {

/// Adds what is wrong with a configuration for one command only.
using ConfigCheck = std::function<void(const RunConfig&, Problems&)>;

/// The key of which `capstan sweep` makes many configurations (run/training/sweep.hpp).
constexpr const char* sweep_key = "sweep";

/// The configuration of a single run. Throws ConfigError also when it has a key `sweep`.
RunConfig load_run(const ConfigOptions& options, const ConfigCheck& check = {});

/// The files and values that a user gives, over the defaults; not checked. Throws ConfigError when they cannot be read.
ConfigNode load_config_tree(const ConfigOptions& options, ProblemList& problems);
/// The configuration of such a tree, checked, with the columns of its data found. `problems`: those already found in
/// the tree. `said`: what was logged of the data, which is not said twice.
RunConfig read_run(const ConfigNode& tree, ProblemList problems, const ConfigCheck& check, std::string& said);

/// config.yaml of a run's folder, with overrides ("path.to.key=value"). Throws ConfigError,
/// and NewerFile if a newer version made the run.
RunConfig load_run_config(const std::filesystem::path& folder, const std::vector<std::string>& overrides = {});

/// A recorded part of a configuration. `below`: its path, such as "model"; `source`: what errors call it.
template <class Part>
Part saved_part(const std::string& text, const std::string& below, const std::string& source) {
  ProblemList problems;
  ConfigNode tree = to_node(Part{});
  if (auto saved = parse_yaml(text, Place{source}, Places::kept, below, problems)) {
    translate(*saved, below);
    merge(tree, std::move(*saved));
  }
  return read_config<Part>(tree, problems);
}

/// Logs the first of the notes, once: runs of one version all have the same to say.
void log_translations(const std::vector<std::string>& notes);

}  // namespace capstan
