// YAML text to ConfigNode. The only user of the YAML library. tests/run/yaml/test_config_errors.cpp and
// tests/fuzz/fuzz_yaml.cpp.
#pragma once

#include <optional>
#include <string>

#include "run/yaml/config_node.hpp"

namespace capstan {

/// How places are written into the tree: with line and column, or (values of --set) without.
enum class Places { kept, dropped };

/// The tree of one YAML document, or nothing, with the reason added to `problems`. Duplicate keys are added there too,
/// and do not stop the parse. Aliases are expanded; tags, merge keys and unreasonably large or deep trees are refused.
/// `start` names the source; `path` is the key path of the text.
std::optional<ConfigNode> parse_yaml(const std::string& text, const Place& start, Places places,
                                     const std::string& path, ProblemList& problems);

}  // namespace capstan
