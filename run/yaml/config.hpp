// Configuration for the apps: a struct with describe() (core/config/schema.hpp) is read from YAML files and overrides,
// written back, compared and documented.
//
//   const auto config = load_config<RunConfig>({"base.yaml", "mine.yaml"}, {"model.layers.0.mixer.window=64"});
//   save(to_yaml(config));
//
// run/setup reads every configuration of a run by it; tests/run/yaml holds what is read, written and refused.
#pragma once

#include "run/yaml/config_reader.hpp"
#include "run/yaml/config_source.hpp"
#include "run/yaml/config_table.hpp"
#include "run/yaml/config_writer.hpp"

namespace capstan {

/// Reads a whole tree into a struct. Throws ConfigError with all problems.
template <class C>
C read_config(const ConfigNode& tree, ProblemList& problems) {
  C config{};
  read_value(tree, Location{"", tree.place, problems}, any(), config);
  problems.throw_if_any();
  return config;
}

/// Defaults, then the YAML files in their order (later ones win key by key; lists, and variants of another type,
/// replace), then overrides "path.to.key=value". Throws one ConfigError that names every problem with its place:
///   mine.yaml:14:7: train.lr: expected a number (greater than 0), got "fast"
template <class C>
C load_config(const std::vector<std::string>& files, const std::vector<std::string>& overrides = {}) {
  ProblemList problems;
  return read_config<C>(load_tree(to_node(C{}), files, overrides, problems), problems);
}

/// load_config() for one YAML text, such as the part of a configuration that a checkpoint records; messages use `name`
/// as the file name. `below`: the path of the part, such as "model".
template <class C>
C load_config_text(const std::string& text, const std::string& name, const std::string& below = "") {
  ProblemList problems;
  return read_config<C>(load_tree_from_text(to_node(C{}), text, name, problems, below), problems);
}

}  // namespace capstan
