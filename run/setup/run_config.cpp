// Rules that join several keys of a run's configuration, and reading it. A user's is read in two parts, the merged tree
// and then its values, because a sweep changes the tree between them; all problems are collected before one error names
// them: tests/run/test_sweep.cpp (a sweep is refused here) and tests/run/yaml/test_config_errors.cpp. What earlier
// versions wrote must stay readable: tests/cli/runs/test_old_runs.cpp.
#include "run/setup/run_config.hpp"

#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "core/strings/nearest.hpp"
#include "core/strings/strings.hpp"
#include "train/checkpoints/checkpoint.hpp"

namespace capstan {
namespace fs = std::filesystem;

namespace {

/// Refuses keys without a meaning for weights that are solved for in one go.
void check_solved(const RunConfig& config, Problems& problems) {
  if (!facts_of(config.model).is_solved) return;
  const auto refuse = [&](bool given, const char* key, const char* why) {
    if (given) problems.add(key, fmt::format("a {} {}", type_of(config.model), why));
  };
  refuse(!config.train.init_skip.empty(), "train.init_skip", "takes the whole of train.init_from");
  refuse(!config.train.freeze.empty(), "train.freeze", "is not trained in steps");
  refuse(config.train.minutes > 0, "train.minutes", "is solved for, in no number of steps");
}

/// Refuses what is left open where no plan (run/training/plan) will choose it.
void check_open(const RunConfig& config, Problems& problems) {
  constexpr const char* unplanned = "is left open, which is for train.minutes to choose: set it, without train.steps";
  const bool planned = config.train.minutes > 0 && config.train.steps == 0;
  if (const auto* const muon = std::get_if<MuonConfig>(&config.train.optimizer); muon != nullptr && !planned)
    if (!muon->weight_decay) problems.add("train.optimizer.weight_decay", unplanned);
  const ModelConfig* const model = find_model(config.model);
  if (model == nullptr) return;
  for (const std::string& key : open_keys(*model))
    if (facts_of(config.model).classifies())
      problems.add("model." + key, "only that of a language model can be left open");
    else if (!planned)
      problems.add("model." + key, unplanned);
}

/// Why a name does not lead to a folder below that of all runs; empty if it does.
std::string name_problem(const std::string& name) {
  if (name.find('\0') != std::string::npos) return "contains a zero byte";
  for (const std::string_view part : split(name, "/"))
    if (part.empty() || part.front() == '.')
      return fmt::format(
          "expected the name of a folder below \"folder\", without parts that are empty or begin with a "
          "dot, got {}",
          name);
  return "";
}

/// Throws NewerFile if a version that this one does not read saved the run.
void refuse_other_version(const fs::path& folder) {
  try {
    if (const auto last = Checkpoints(folder / "checkpoints").last()) read_state(*last);
  } catch (const NewerFile&) {
    throw;
  } catch (const Error&) {  // the caller reports the configuration, which is also wrong
  }
}

/// The names of the runs right below a folder.
std::vector<std::string> runs_below(const fs::path& folder) {
  std::error_code unknown;
  std::vector<std::string> names;
  if (!fs::is_directory(folder, unknown)) return names;
  for (const std::string& name : names_in_folder(folder.string()))
    if (fs::exists(folder / name / "config.yaml", unknown)) names.push_back(name);
  return names;
}

/// What to give instead of a folder that is not a run's.
std::string run_instead(const fs::path& folder) {
  if (const std::vector<std::string> inside = runs_below(folder); !inside.empty())
    return fmt::format("it is a folder of runs: give one of them, such as {}", (folder / inside.front()).string());
  const fs::path place = folder.has_parent_path() ? folder.parent_path() : fs::path("runs");
  const std::vector<std::string> runs = runs_below(place);
  if (runs.empty()) return "give the folder of a run, such as runs/NAME; capstan compare shows those that there are";
  const std::string meant = nearest(folder.filename().string(), runs);
  return meant.empty() ? fmt::format("below {} there are the runs {}", place.string(), join_first(runs))
                       : fmt::format("is {} meant?", (place / meant).string());
}

}  // namespace

const ModelConfig& model_of(const RunConfig& config) {
  if (const ModelConfig* const model = find_model(config.model)) return *model;
  throw Error(fmt::format("a {} has no blocks", type_of(config.model)));
}
ModelConfig& model_of(RunConfig& config) {
  return const_cast<ModelConfig&>(model_of(static_cast<const RunConfig&>(config)));
}

fs::path folder_of(const RunConfig& config) { return fs::path(config.folder) / config.name; }

RunConfig::RunConfig() = default;
RunConfig::RunConfig(const RunConfig&) = default;
RunConfig::RunConfig(RunConfig&&) noexcept = default;
RunConfig& RunConfig::operator=(const RunConfig&) = default;
RunConfig& RunConfig::operator=(RunConfig&&) noexcept = default;
RunConfig::~RunConfig() = default;

void validate(const RunConfig& config, Problems& problems) {
  if (const std::string problem = name_problem(config.name); !config.name.empty() && !problem.empty())
    problems.add("name", problem);
  check_solved(config, problems);
  check_open(config, problems);
  const SourceFacts data = facts_of(config.data);
  const ModelFacts facts = facts_of(config.model);
  if (!data.has_labels && facts.classifies())
    problems.add("data.type", fmt::format("{} has no labels: a {} needs data of type {}", type_of(config.data),
                                          type_of(config.model), source_types(true)));
  else if (data.has_pairs && !facts.takes_pairs)
    problems.add("data.type", fmt::format("{} are for a language-model", type_of(config.data)));
  if (facts.reads_sources && !data.has_pairs)
    problems.add("model.prefix", "only data of type pairs have sources to be read as a whole");
  const bool label_sets = data.multi_label() && facts.classifies(), one_label = facts.classifies() && !label_sets;
  const std::string& monitor = config.train.monitor;
  const bool has_target = monitor == "recall" || monitor == "precision", of_class = has_target || monitor == "f1";
  if (of_class && label_sets)
    problems.add(
        "train.monitor",
        monitor +
            " is for a classifier that gives a text one label; with several, macro-f1 finds for each of them the "
            "threshold with its highest F1");
  else if (const Metric& metric = metric_of(config.train.monitor);
           (metric.of == Metric::Of::label_sets && !label_sets) || (metric.of == Metric::Of::one_label && !one_label) ||
           (metric.of == Metric::Of::classes && !facts.classifies()))
    problems.add("train.monitor",
                 fmt::format("{} is for {}; choose loss or accuracy", metric.monitor,
                             metric.of == Metric::Of::label_sets  ? "a classifier with data.multi_label: true"
                             : metric.of == Metric::Of::one_label ? "a classifier that gives a text one label"
                                                                  : "classifiers"));
  if (of_class && config.train.monitor_class.empty())
    problems.add("train.monitor", monitor + " needs the name of a class: set train.monitor_class");
  if (!of_class && !config.train.monitor_class.empty())
    problems.add("train.monitor_class", "is for train.monitor: f1, recall or precision");
  if (has_target != (config.train.monitor_at_least > 0))
    problems.add("train.monitor_at_least", has_target ? "must say which share is asked for, such as 0.9"
                                                      : "is for train.monitor: recall or precision");
  for (size_t i = 0; i < config.train.costs.size(); ++i)
    if (config.train.costs[i].truth.empty())
      problems.add(fmt::format("train.costs.{}", i),
                   "name the class that a text has, truth; and the one that it is given, predicted, "
                   "unless all of its mistakes cost as much");
  if (config.train.monitor != "cost" && !config.train.costs.empty())
    problems.add("train.costs", "are for train.monitor: cost");
  if (data.has_labels && !facts.takes_labels)
    problems.add("data.type", fmt::format("a {} needs data of type {}", type_of(config.model), source_types(false)));
  const ModelConfig* const model = find_model(config.model);
  if (const auto limit = model != nullptr ? position_limit(*model) : std::nullopt) {
    const std::string key = fmt::format("data.{}", data.longest_key);
    if (data.longest == 0) problems.add(key, fmt::format("must be limited: the model has {} positions", *limit));
    if (data.longest > *limit)
      problems.add(key, fmt::format("{} tokens are more than the {} positions of the model (model.max_length)",
                                    data.longest, *limit));
  }
}

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

std::string no_run(const fs::path& folder) {
  std::error_code unknown;
  const std::string path = folder.string();
  const bool exists = fs::exists(folder, unknown), pattern = path.find_first_of("*?[") != std::string::npos;
  return fmt::format("{}: {}; {}", path,
                     exists    ? "there is no config.yaml here"
                     : pattern ? "no folder matches this pattern"
                               : "there is no such folder",
                     run_instead(folder));
}

RunConfig load_run_config(const fs::path& folder, const std::vector<std::string>& overrides) {
  std::error_code error;
  const bool exists = fs::exists(folder / "config.yaml", error);
  if (error == std::errc::permission_denied) throw_file_error("read", folder.string(), error.value());
  if (!exists) throw Error(no_run(folder));
  try {
    return load_config<RunConfig>({(folder / "config.yaml").string()}, overrides);
  } catch (const ConfigError&) {
    refuse_other_version(folder);
    throw;
  }
}

template ConfigNode to_node(const RunConfig&);
template ConfigNode to_node(const TaskConfig&);
template ConfigNode to_node(const MixerConfig&);
template void read_value(const ConfigNode&, const Location&, const Constraint&, RunConfig&);
template std::vector<TableRow> config_rows(RunConfig);

}  // namespace capstan
