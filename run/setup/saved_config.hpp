// The configuration that a run has written, by this version or an earlier one (run/yaml/moved_keys.hpp). What opens or
// continues a run reads it here; tests/cli/runs/test_old_runs.cpp does so with runs of earlier versions.
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
/// and NewerFile if a newer version made the run.
RunConfig load_run_config(const std::filesystem::path& folder, const std::vector<std::string>& overrides = {});

/// Why there is no run in this folder, and what was probably meant: a run whose name is nearest, one of those in the
/// folder, the best run of a search.
std::string no_run(const std::filesystem::path& folder);

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
