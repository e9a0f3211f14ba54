#include "run/setup/load_config.hpp"

#include <mutex>

#include "core/io/log.hpp"
#include "run/setup/run_data.hpp"
#include "train/checkpoints/checkpoint.hpp"

namespace capstan {
namespace {

/// Throws NewerFile if a newer version saved the run.
void refuse_newer(const std::filesystem::path& folder) {
  try {
    if (const auto last = Checkpoints(folder / "checkpoints").last()) read_state(*last);
  } catch (const NewerFile&) {
    throw;
  } catch (const Error&) {  // the configuration is what the caller reports
  }
}

}  // namespace

void log_translations(const std::vector<std::string>& notes) {
  static std::once_flag logged;
  if (!notes.empty()) std::call_once(logged, [&] { log_info(notes.front()); });
}

ConfigNode load_config_tree(const ConfigOptions& options, ProblemList& problems) {
  ConfigNode tree = load_tree(to_node(RunConfig{}), options.files, options.overrides, problems);
  log_translations(problems.notes());
  return tree;
}

RunConfig read_run(const ConfigNode& tree, ProblemList problems, const ConfigCheck& check, std::string& said) {
  RunConfig config = read_config<RunConfig>(tree, problems);
  if (check) {
    const Location top{"", tree.place, problems};
    ProblemsBelow below(tree, top);
    check(config, below);
    problems.throw_if_any();
  }
  said = find_data_columns(config, said);
  return config;
}

RunConfig load_run(const ConfigOptions& options, const ConfigCheck& check) {
  ProblemList problems;
  const ConfigNode tree = load_config_tree(options, problems);
  if (const ConfigNode* const sweep = tree.find(sweep_key)) {
    problems.add(sweep->key_place, sweep_key, "is a sweep of several runs: train them with capstan sweep");
    problems.throw_if_any();
  }
  std::string said;
  return read_run(tree, std::move(problems), check, said);
}

RunConfig load_run_config(const std::filesystem::path& folder, const std::vector<std::string>& overrides) {
  try {
    ProblemList problems;
    const ConfigNode tree = load_tree(to_node(RunConfig{}), {(folder / "config.yaml").string()}, overrides, problems);
    log_translations(problems.notes());
    return read_config<RunConfig>(tree, problems);
  } catch (const ConfigError&) {
    refuse_newer(folder);
    throw;
  }
}

}  // namespace capstan
