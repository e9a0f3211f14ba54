// Opens the data of a run, and says what to do where a split or a file of them is missing. The data of a saved run must
// be cut as in training: refuse_other_cut(). tests/cli/runs/test_eval.cpp, test_tables.cpp and test_decisions.cpp.
#include "run/setup/run_data.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/base/error.hpp"
#include "core/base/out_of_memory.hpp"
#include "core/io/log.hpp"
#include "core/strings/strings.hpp"
#include "data/files/file_list.hpp"
#include "data/labelled/found_columns.hpp"
#include "run/setup/run_model.hpp"
#include "run/setup/saved_config.hpp"
#include "run/yaml/config_diff.hpp"
#include "train/checkpoints/checkpoint.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;

/// "data.train: text" for each relative path that leads nowhere from here. Of a pattern, the part before its first
/// wildcard counts.
std::vector<std::string> missing_paths(const RunConfig& config) {
  std::vector<std::string> missing;
  const ConfigNode tree = to_node(config);
  const ConfigNode* const data = tree.find("data");
  const auto look = [&](const std::string& key, const ConfigNode& value) {
    fs::path path = value.text.substr(0, value.text.find_first_of("*?["));
    if (path.string() != value.text) path = path.parent_path();
    std::error_code error;
    if (!path.empty() && path.is_relative() && !fs::exists(path, error))
      missing.push_back(fmt::format("data.{}: {}", key, value.text));
  };
  for (const char* const key : {"train", "valid", "test"}) {
    const ConfigNode* const value = data != nullptr ? data->find(key) : nullptr;
    if (value == nullptr) continue;
    for (const ConfigNode& entry : value->children) look(key, entry);
  }
  return missing;
}

}  // namespace

std::string files_text(const SourceConfig& config) {
  std::vector<std::string> keys;
  for (const SourceFiles& files : facts_of(config).files)
    if (files.key != std::string("test") && !files.paths.empty())
      keys.push_back(fmt::format("data.{}: {}", files.key, join_first(files.paths)));
  return join(keys, "; ");
}

Split split_named(const std::string& name) {
  for (const Split split : all_splits)
    if (name == to_string(split)) return split;
  throw ConfigError(fmt::format("--split: {} is not one of train, valid, test", name));
}

Split held_out_split(const std::string& name, const DataSource& data) {
  if (!name.empty()) return split_named(name);
  if (data.has(Split::valid) || !data.has(Split::test)) return Split::valid;
  log_info("the run has no validation data: its test data are used (--split test)");
  return Split::test;
}

namespace {

/// Takes the columns from the run in the folder, where it has one on the same files: training that goes on must read
/// what it has read. Keys that the saved run leaves unset stay unset, since the version that wrote it did not look for
/// them. Returns whether there is such a run.
template <class Source>
bool take_columns(const RunConfig& config, Source& data) {
  const fs::path folder = folder_of(config);
  std::error_code unknown;
  if (!fs::exists(folder / "config.yaml", unknown) || !Checkpoints(folder / "checkpoints").last()) return false;
  try {
    const RunConfig saved = load_run_config(folder);
    const auto* const saved_data = std::get_if<Source>(&saved.data);
    if (saved_data == nullptr || saved_data->train != data.train) return false;
    const auto take = [](auto& ours, const auto& before) {
      if (ours == std::decay_t<decltype(ours)>()) ours = before;
    };
    take(data.header, saved_data->header);
    if constexpr (std::is_same_v<Source, LabelledSourceConfig>) {
      take(data.label_column, saved_data->label_column);
      take(data.label_columns, saved_data->label_columns);
      take(data.text_columns, saved_data->text_columns);
      // The saved run has found that texts have several labels, from lists of them in its column.
      if (LabelledSourceConfig with_columns = data; saved_data->multi_label && !data.multi_label) {
        find_columns(with_columns, facts_of(config.model).classifies());
        data.multi_label = with_columns.multi_label;
      }
    } else {
      take(data.source_column, saved_data->source_column);
      take(data.target_column, saved_data->target_column);
    }
    return true;
  } catch (const Error&) {  // training reads the same files and reports it
    return false;
  }
}

}  // namespace

std::string find_data_columns(RunConfig& config, const std::string& already_logged) {
  std::string line;
  if (auto* const labelled = std::get_if<LabelledSourceConfig>(&config.data))
    line = take_columns(config, *labelled) ? "" : find_columns(*labelled, facts_of(config.model).classifies());
  if (auto* const pairs = std::get_if<PairSourceConfig>(&config.data))
    line = take_columns(config, *pairs) ? "" : find_columns(*pairs);
  if (!line.empty() && line != already_logged) log_info(line);
  return line;
}

namespace {

/// The share of the training data that is held out for a split.
double held_out(const PairSourceConfig& data, Split split) { return split == Split::valid ? data.valid_fraction : 0; }
double held_out(const LabelledSourceConfig& data, Split split) {
  return split == Split::valid ? (data.folds > 0 ? 1 / static_cast<double>(data.folds) : data.valid_fraction) : 0;
}
double held_out(const TextSourceConfig& data, Split split) {
  return split == Split::valid ? data.valid_fraction : split == Split::test ? data.test_fraction : 0;
}

/// Takes a split out of a configuration: its files, and the share of the training data that is held out for it. Without
/// training data, no split can be held out of them.
template <class Source>
void leave_out(Source& data, Split split) {
  part_of(data, split).clear();
  if (split != Split::test) data.valid_fraction = 0;
  if constexpr (std::is_same_v<Source, LabelledSourceConfig>)
    if (split == Split::train) data.folds = 0;
  if constexpr (std::is_same_v<Source, TextSourceConfig>) {
    if (split != Split::valid) data.test_fraction = 0;
    if (split == Split::train) data.weights.clear();
  }
}

/// visit(data) where the data are files, of a type that has rules above.
template <class Data, class Visit>
void with_files(Data& data, const Visit& visit) {
  std::visit(
      [&](auto& source) {
        using Source = std::decay_t<decltype(source)>;
        if constexpr (std::is_same_v<Source, TextSourceConfig> || std::is_same_v<Source, LabelledSourceConfig> ||
                      std::is_same_v<Source, PairSourceConfig>)
          visit(source);
      },
      data);
}

/// Takes files that do not exist out of a configuration, where `only` is read without them.
void leave_out_missing(SourceConfig& config, Split only) {
  with_files(config, [&](auto& data) {
    const bool from_train = part_of(data, only).empty() && held_out(data, only) > 0;
    for (const Split split : all_splits) {
      const std::vector<std::string>& paths = part_of(data, split);
      const bool missing =
          std::any_of(paths.begin(), paths.end(), [](const std::string& path) { return !missing_file(path).empty(); });
      if (missing && split != only && !(split == Split::train && from_train)) leave_out(data, split);
    }
  });
}

}  // namespace

Split default_split(const RunConfig& config) {
  Split usual = Split::valid;
  with_files(config.data, [&](const auto& data) {
    if (data.valid.empty() && held_out(data, Split::valid) == 0) usual = Split::test;
  });
  return usual;
}

namespace {

/// May a share of the training data be held out for the split?
bool is_cut_from_train(Split split, const SourceConfig& config) {
  bool cut = false;
  with_files(config, [&](const auto& data) {
    constexpr bool is_text = std::is_same_v<std::decay_t<decltype(data)>, TextSourceConfig>;
    cut = split == Split::valid || (is_text && split == Split::test);
  });
  return cut;
}

bool has_files(const SourceConfig& config) {
  bool files = false;
  with_files(config, [&](const auto&) { files = true; });
  return files;
}

}  // namespace

std::string how_to_get_split(Split split, const SourceConfig& config) {
  if (!has_files(config)) return fmt::format("data.{}=1000, a number of examples", to_string(split));
  return fmt::format(is_cut_from_train(split, config) ? "data.{0}=[FILE] or data.{0}_fraction=0.1" : "data.{0}=[FILE]",
                     to_string(split));
}

void require_split(Split split, const RunConfig& config, const DataSource& data) {
  if (data.has(split)) return;
  const std::string absent = fmt::format("data: there is no {} split: ", to_string(split));
  if (split == Split::train || !has_files(config.data))
    throw Error(absent + "give --set " + how_to_get_split(split, config.data));
  std::vector<std::string> instead;
  if (split == Split::test && data.has(Split::valid)) instead.emplace_back("the validation data with --split valid");
  if (split == Split::valid && data.has(Split::test)) instead.emplace_back("the test data with --split test");
  instead.emplace_back("files that the run has not seen with --set data.test=[FILE] --split test");
  std::string again;
  if (is_cut_from_train(split, config.data))
    again = fmt::format("; another run that is trained with data.{}_fraction=0.1 has one", to_string(split));
  const bool cross_validated = split == Split::valid && facts_of(config.model).is_solved;
  throw Error(
      fmt::format("{}evaluate {}{}{}", absent, join(instead, ", or "), again,
                  cross_validated ? "; figures in the log are from cross-validation on the training data" : ""));
}

SourceInputs source_inputs(const RunConfig& config) {
  SourceInputs inputs;
  inputs.batches = {config.train.batch_size, config.train.batch_tokens};
  const ModelFacts facts = facts_of(config.model);
  inputs.classifies = facts.classifies();
  inputs.keep_texts = facts.reads_characters();
  inputs.seed = static_cast<uint64_t>(config.seed);
  if (config.train.progress != ProgressMode::none) inputs.log = [](const std::string& line) { log_info(line); };
  return inputs;
}

std::unique_ptr<DataSource> open_data(const RunConfig& config) {
  SourceInputs inputs = source_inputs(config);
  inputs.cache = CacheUse::write;
  inputs.scratch = config.folder;
  const MemoryFor purpose("reading the data");
  const Stopwatch watch;
  std::unique_ptr<DataSource> data = open_source(config.data, inputs);
  log_debug(fmt::format("the data were read in {:.3f} s", watch.seconds()));
  return data;
}

namespace {

/// Throws ConfigError where other texts of the training data are held out than when the run was trained: it has learnt
/// some of them.
void refuse_other_cut(const RunConfig& trained, const RunConfig& evaluated) {
  static const std::set<std::string> keys{"data.valid_fraction", "data.test_fraction", "data.folds", "data.fold",
                                          "data.split"};
  bool held = false;
  with_files(evaluated.data, [&](const auto& data) {
    for (const Split split : {Split::valid, Split::test})
      held = held || (part_of(data, split).empty() && held_out(data, split) > 0);
  });
  std::string key;
  for (const ConfigDifference& difference : diff_configs(trained, evaluated)) {
    if (difference.path == "data.train") return;
    if (keys.count(difference.path) > 0) key = difference.path;
  }
  if (held && !key.empty())
    throw ConfigError(
        fmt::format("--set {}: holds out texts that the run was trained on; train another run with it (name=NEW), or "
                    "evaluate files "
                    "that this one has not seen with --set data.test=[FILE] --split test",
                    key));
}

/// Throws ConfigError where the model or its tokenizer would be another than the one whose weights are evaluated.
void refuse_other_model(const RunConfig& trained, const RunConfig& evaluated) {
  for (const ConfigDifference& difference : diff_configs(trained, evaluated))
    if (starts_with(difference.path, "model") || starts_with(difference.path, "data.tokenizer"))
      throw ConfigError(
          fmt::format("--set {}={}: the run was trained with {}, and its weights are those of that model; leave this "
                      "key unchanged, or train another run with it (name=NEW)",
                      difference.path, difference.b, difference.a));
}

}  // namespace

SavedRun with_overrides(SavedRun run, const std::vector<std::string>& overrides) {
  const RunConfig trained = run.config;
  const bool multi_label = facts_of(run.config.data).multi_label();
  const int64_t known = model_vocabulary(run.config, *run.tokenizer);
  if (!overrides.empty()) {
    run.config = load_run_config(run.folder, overrides);
    refuse_other_model(load_run_config(run.folder), run.config);
  }
  if (model_vocabulary(run.config, *run.tokenizer) > known)
    throw ConfigError(
        "--set: the model was trained without data.documents or data.separator and lacks the token that they "
        "add; leave these keys unchanged, or train a model with them");
  if (facts_of(run.config.model).classifies() && facts_of(run.config.data).multi_label() != multi_label)
    throw ConfigError(fmt::format("--set: the model was trained with data.multi_label: {}; leave this key unchanged",
                                  multi_label ? "true" : "false"));
  refuse_other_cut(trained, run.config);
  return run;
}

std::unique_ptr<DataSource> open_saved_data(const SavedRun& run, std::optional<Split> only) {
  try {
    SourceInputs inputs = source_inputs(run.config);
    inputs.tokenizer = run.tokenizer;
    inputs.classes = run.classes;
    const MemoryFor purpose("reading the data");
    SourceConfig data = run.config.data;
    if (only) leave_out_missing(data, *only);
    return open_source(data, inputs);
  } catch (const ConfigError&) {
    throw;
  } catch (const Error& error) {
    const std::vector<std::string> missing = missing_paths(run.config);
    if (missing.empty()) throw;
    std::error_code unknown;
    const fs::path here = fs::current_path(unknown), state = fs::path(run.weights).parent_path();
    const std::string trained = fs::exists(state / state_name) ? read_state(state).working_folder : "";
    throw Error(fmt::format(
        "{}; not found from {}: {}; run the command {}, or name the files with --set data.train=[...] "
        "and the like (capstan eval)",
        error.what(), here.string(), join(missing),
        trained.empty() || trained == here.string() ? std::string("in the folder where the run was trained")
                                                    : fmt::format("in {}, where the run was trained", trained)));
  }
}

std::optional<DecisionGoal> decision_goal(const RunConfig& config, const DataSource& data) {
  using Kind = DecisionGoal::Kind;
  const ModelFacts facts = facts_of(config.model);
  const bool multi_label = facts_of(config.data).multi_label();
  const std::string& monitor = config.train.monitor;
  const std::vector<std::string> classes = data.classes();
  if (!facts.classifies() || classes.empty()) return std::nullopt;
  const auto index_of = [&](const char* key, const std::string& name) {
    const auto found = std::find(classes.begin(), classes.end(), name);
    if (found != classes.end()) return static_cast<int64_t>(found - classes.begin());
    throw ConfigError(fmt::format("train.{}: the data has no class '{}'; it has {}", key, name, join_first(classes)));
  };
  DecisionGoal goal;
  goal.classes = static_cast<int64_t>(classes.size());
  if (monitor == "macro-f1") {
    goal.kind = Kind::macro_f1;
  } else if (monitor == "f1") {
    goal.kind = Kind::f1;
    goal.label = index_of("monitor_class", config.train.monitor_class);
  } else if (monitor == "cost") {
    goal.kind = Kind::cost;
    goal.rule.assign(classes.size() * classes.size(), 1);
    for (size_t c = 0; c < classes.size(); ++c) goal.rule[c * classes.size() + c] = 0;
    for (const MistakeCost& mistake : config.train.costs) {
      const int64_t row = index_of("costs", mistake.truth), column = index_of("costs", mistake.predicted);
      goal.rule[static_cast<size_t>(row * goal.classes + column)] = mistake.cost;
    }
  } else if (!multi_label && facts.class_weights != nullptr && data.has(Split::train)) {
    goal.rule = weights_of(*facts.class_weights, data.class_counts(), data.training().examples_per_epoch(), false);
  }
  if (goal.kind == Kind::given && goal.rule.empty()) return std::nullopt;
  return goal;
}

}  // namespace capstan
