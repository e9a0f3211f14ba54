// Reads a user's configuration in two parts, the merged tree and then its values, because a sweep changes the tree
// between them. All problems are collected before one error names them: tests/run/test_sweep.cpp (a sweep is refused
// here) and tests/run/yaml/test_config_errors.cpp.
#include "run/setup/given_config.hpp"

namespace capstan {

ConfigNode load_config_tree(const ConfigOptions& options, ProblemList& problems) {
  return load_tree(to_node(RunConfig{}), options.files, options.overrides, problems);
}

RunConfig read_run(const ConfigNode& tree, ProblemList problems, const ConfigCheck& check) {
  const RunConfig config = read_config<RunConfig>(tree, problems);
  if (check) {
    const Location top{"", tree.place, problems};
    ProblemsBelow below(tree, top);
    check(config, below);
    problems.throw_if_any();
  }
  return config;
}

RunConfig load_run(const ConfigOptions& options, const ConfigCheck& check) {
  ProblemList problems;
  const ConfigNode tree = load_config_tree(options, problems);
  if (const ConfigNode* const sweep = tree.find(sweep_key)) {
    problems.add(sweep->key_place, sweep_key, "is a sweep of several runs: train them with capstan sweep");
    problems.throw_if_any();
  }
  return read_run(tree, std::move(problems), check);
}

}  // namespace capstan
