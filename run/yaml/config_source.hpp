// The sources of a configuration: defaults, then YAML files, then overrides, each merged into the result so far.
// load_config() and run/setup call it. tests/run/yaml/test_config_errors.cpp, test_config_fuzz.cpp and
// tests/fuzz/fuzz_yaml.cpp and fuzz_set.cpp hold that no text leads to anything but a tree or a ConfigError.
#pragma once

#include <string>
#include <vector>

#include "run/yaml/config_node.hpp"

namespace capstan {

/// Merges the files and then the overrides ("path.to.key=value"; the value is YAML, list elements are numbered) into
/// `base`. Throws ConfigError immediately if a file or an override cannot be parsed; other problems go to `problems`.
ConfigNode load_tree(ConfigNode base, const std::vector<std::string>& files, const std::vector<std::string>& overrides,
                     ProblemList& problems);

/// load_tree() for one text in memory, whose keys are below the path `below`; messages use `name` as the file name.
ConfigNode load_tree_from_text(ConfigNode base, const std::string& text, const std::string& name, ProblemList& problems,
                               const std::string& below = "");

/// Merges `value` into the node at `path` below `root`, as an override does.
/// Returns what is wrong with the path, or nothing.
std::string set_value(ConfigNode& root, const std::string& path, ConfigNode value);

}  // namespace capstan
