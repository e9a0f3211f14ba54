// The differences of two configurations, for instance those of a saved run and of the one that goes on with it.
#pragma once

#include <string>
#include <vector>

#include "run/yaml/config_writer.hpp"

namespace capstan {

/// One key whose values differ, both as YAML on one line; "absent" if a list is shorter.
struct ConfigDifference {
  std::string path, a, b;
};

/// Maps and lists are compared key by key and element by element;
/// a variant whose type differs counts as one difference.
std::vector<ConfigDifference> diff_trees(const ConfigNode& a, const ConfigNode& b);

template <class C>
std::vector<ConfigDifference> diff_configs(const C& a, const C& b) {
  return diff_trees(to_node(a), to_node(b));
}

}  // namespace capstan
