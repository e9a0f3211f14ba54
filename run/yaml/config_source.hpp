// The sources of a configuration: defaults, then YAML files, then overrides, each merged into the result so far.
// load_config() and run/setup call it. tests/run/yaml/test_config_errors.cpp, test_config_fuzz.cpp and
// tests/fuzz/fuzz_yaml.cpp and fuzz_set.cpp hold that no text leads to anything but a tree or a ConfigError.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "run/yaml/config_node.hpp"

namespace capstan {

/// Merges the files and then the overrides ("path.to.key=value"; the value is YAML, list elements are numbered) into
/// `base`. Throws ConfigError immediately if a file or an override cannot be parsed; other problems go to `problems`.
ConfigNode load_tree(ConfigNode base, const std::vector<std::string>& files, const std::vector<std::string>& overrides,
                     ProblemList& problems);

/// load_tree() for one text in memory; messages use `name` as the file name.
ConfigNode load_tree_from_text(ConfigNode base, const std::string& text, const std::string& name,
                               ProblemList& problems);

/// Merges `value` into the node at `path` below `root`, as an override does.
/// Returns what is wrong with the path, or nothing.
std::string set_value(ConfigNode& root, const std::string& path, ConfigNode value);

// YAML text to ConfigNode. The only user of the YAML library.

/// How places are written into the tree: with line and column, or (values of --set) without.
enum class Places { kept, dropped };

/// The tree of one YAML document, or nothing, with the reason added to `problems`. Duplicate keys are added there too,
/// and do not stop the parse. Aliases are expanded; tags, merge keys and unreasonably large or deep trees are refused.
/// `start` names the source; `path` is the key path of the text.
std::optional<ConfigNode> parse_yaml(const std::string& text, const Place& start, Places places,
                                     const std::string& path, ProblemList& problems);

}  // namespace capstan
