// The configuration that a run has written: keys that were added since have their defaults. What opens or continues a
// run reads it here; tests/cli/runs/test_old_runs.cpp does so with a run of version 0.4.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "run/setup/run_config.hpp"
#include "run/yaml/config.hpp"
#include "run/yaml/config_source.hpp"
#include "run/yaml/yaml_parse.hpp"

namespace capstan {

/// config.yaml of a run's folder, with overrides ("path.to.key=value"). Throws Error where there is none, ConfigError,
/// and NewerFile if the run is of a version that this one does not read.
RunConfig load_run_config(const std::filesystem::path& folder, const std::vector<std::string>& overrides = {});

/// Why there is no run in this folder, and what was probably meant: a run whose name is nearest, one of those in the
/// folder, the best run of a search.
std::string no_run(const std::filesystem::path& folder);

/// A recorded part of a configuration. `below`: its path, such as "model"; `source`: what errors call it.
template <class Part>
Part saved_part(const std::string& text, const std::string& below, const std::string& source) {
  ProblemList problems;
  ConfigNode tree = to_node(Part{});
  if (auto saved = parse_yaml(text, Place{source}, Places::kept, below, problems)) merge(tree, std::move(*saved));
  return read_config<Part>(tree, problems);
}

}  // namespace capstan
