// Where a configuration comes from: defaults, then YAML files, then overrides, each laid on the one before.
#pragma once

#include <string>
#include <vector>

#include "apps/config/config_node.hpp"

namespace capstan {

/// Lays the files and then the overrides ("path.to.key=value", the value being YAML, list elements by number) on
/// `base`. Throws ConfigError at once if a file or an override cannot be parsed; lesser problems go to `problems`.
ConfigNode load_tree(ConfigNode base, const std::vector<std::string>& files, const std::vector<std::string>& overrides,
                     ProblemList& problems);

/// The same for one text in memory; `name` stands for the file name in messages.
ConfigNode load_tree_from_text(ConfigNode base, const std::string& text, const std::string& name,
                               ProblemList& problems);

/// Lays `value` on the node at `path` below `root`, as an override does.
/// Returns what is wrong with the path, or nothing.
std::string set_value(ConfigNode& root, const std::string& path, ConfigNode value);

}  // namespace capstan
