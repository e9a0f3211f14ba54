// Opens the data of a run, by the rules of the types of data that are files: how a split is read or held out of the
// training data, and what to do where it is missing. Those of a trained run must be cut as in training:
// require_same_cut(). tests/cli/runs/test_tables.cpp and test_eval.cpp.
#include "run/setup/run_data.hpp"

#include <algorithm>
#include <filesystem>

#include "core/base/error.hpp"
#include "core/base/out_of_memory.hpp"
#include "core/io/log.hpp"
#include "core/strings/strings.hpp"
#include "data/files/file_list.hpp"
#include "data/labelled/table_reading.hpp"

namespace capstan {
namespace fs = std::filesystem;

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

/// May a share of the training data be held out for the split?
bool is_cut_from_train(Split split, const SourceConfig& config) {
  return split == Split::valid || (split == Split::test && std::holds_alternative<TextSourceConfig>(config));
}

bool has_files(const SourceConfig& config) { return !facts_of(config).files.empty(); }

/// Is a share of the training data held out for the split?
bool is_held_out(Split split, const SourceConfig& config) {
  bool held = false;
  with_files(config, [&](const auto& data) { held = part_of(data, split).empty() && held_out(data, split) > 0; });
  return held;
}

/// Is the split a part of training data, of which a share is held out?
bool is_cut(Split split, const SourceConfig& config) {
  bool own_files = false;
  with_files(config, [&](const auto& data) { own_files = split != Split::train && !part_of(data, split).empty(); });
  return !own_files && (is_held_out(Split::valid, config) || is_held_out(Split::test, config));
}

/// The configuration without files that do not exist, where `only` is read without them.
SourceConfig without_missing_files(SourceConfig config, Split only) {
  with_files(config, [&](auto& data) {
    const bool from_train = part_of(data, only).empty() && held_out(data, only) > 0;
    for (const Split split : all_splits) {
      const std::vector<std::string>& paths = part_of(data, split);
      const bool missing =
          std::any_of(paths.begin(), paths.end(), [](const std::string& path) { return !missing_file(path).empty(); });
      if (missing && split != only && !(split == Split::train && from_train)) leave_out(data, split);
    }
  });
  return config;
}

/// "data.train: text" for each relative path that leads nowhere from here. Of a pattern, the part before its first
/// wildcard counts.
std::vector<std::string> missing_paths(const RunConfig& config) {
  std::vector<std::string> missing;
  for (const SourceFiles& files : facts_of(config.data).files)
    for (const std::string& path : files.paths) {
      fs::path begin = path.substr(0, path.find_first_of("*?["));
      if (begin.string() != path) begin = begin.parent_path();
      std::error_code error;
      if (!begin.empty() && begin.is_relative() && !fs::exists(begin, error))
        missing.push_back(fmt::format("data.{}: {}", files.key, path));
    }
  return missing;
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

/// Throws Error unless the training data, of which a part is held out, are read and cut as in training: the run has
/// learnt some of what would be held out of others.
void require_same_cut(const SavedRun& run, const DataSource& data) {
  const std::string now = data.identity();
  std::string trained;
  if (run.state && run.state->identity.count("data") > 0)
    trained = renewed_identity(run.config.data, run.state->identity.at("data"), now);
  const auto content = [](const std::string& of) { return of.substr(std::min(of.size(), of.find("fingerprint of "))); };
  if (content(trained) == content(now)) return;
  const char* const remedy =
      "of which the run was trained on most; evaluate texts that it has not seen with --set data.test=[FILE] --split "
      "test, or give data.train and its keys as they were";
  if (has_other_content(trained, now))
    throw Error(
        fmt::format("{}: the content of data.train has changed since training: other texts would be held out, {}",
                    run.folder.string(), remedy));
  throw ConfigError(fmt::format("{}: in training, data.train {}: other texts would be held out, {}",
                                run.folder.string(), first_difference(trained, now), remedy));
}

}  // namespace

std::string find_data_columns(RunConfig& config) {
  if (auto* const labelled = std::get_if<LabelledSourceConfig>(&config.data))
    return find_columns(*labelled, facts_of(config.model).classifies());
  if (auto* const pairs = std::get_if<PairSourceConfig>(&config.data)) return find_columns(*pairs);
  return "";
}

RunConfig with_data_columns(RunConfig config) {
  if (const std::string line = find_data_columns(config); !line.empty()) log_info(line);
  return config;
}

std::string files_text(const SourceConfig& config) {
  std::vector<std::string> keys;
  for (const SourceFiles& files : facts_of(config).files)
    if (files.key != std::string("test") && !files.paths.empty())
      keys.push_back(fmt::format("data.{}: {}", files.key, join_first(files.paths)));
  return join(keys, "; ");
}

SourceInputs source_inputs(const RunConfig& config) {
  SourceInputs inputs;
  inputs.batches = {config.train.batch_size, config.train.batch_tokens};
  const ModelFacts facts = facts_of(config.model);
  inputs.classifies = facts.classifies();
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

Split split_named(const std::string& name) {
  for (const Split split : all_splits)
    if (name == to_string(split)) return split;
  throw ConfigError(fmt::format("--split: {} is not one of train, valid, test", name));
}

Split split_to_evaluate(std::optional<Split> asked, const RunConfig& config) {
  Split split = asked.value_or(Split::valid);
  with_files(config.data, [&](const auto& data) {
    const auto has = [&](Split of) { return !part_of(data, of).empty() || held_out(data, of) > 0; };
    if (!asked && !has(Split::valid) && has(Split::test)) split = Split::test;
  });
  if (!asked && split == Split::test) log_info("the run has no validation data: its test data are used (--split test)");
  return split;
}

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

bool has_other_content(const std::string& identity, const std::string& other) {
  const auto settings = [](const std::string& of) { return of.substr(0, of.find("fingerprint of ")); };
  return identity != other && settings(identity) == settings(other);
}

SavedRun with_overrides(SavedRun run, const std::vector<std::string>& overrides) {
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
  return run;
}

std::unique_ptr<DataSource> open_saved_data(const SavedRun& run, Split split) {
  try {
    SourceInputs inputs = source_inputs(run.config);
    inputs.tokenizer = run.tokenizer;
    inputs.classes = run.classes;
    const MemoryFor purpose("reading the data");
    std::unique_ptr<DataSource> data = open_source(without_missing_files(run.config.data, split), inputs);
    if (is_cut(split, run.config.data)) require_same_cut(run, *data);
    return data;
  } catch (const ConfigError&) {
    throw;
  } catch (const Error& error) {
    const std::vector<std::string> missing = missing_paths(run.config);
    if (missing.empty()) throw;
    std::error_code unknown;
    const fs::path here = fs::current_path(unknown);
    const std::string trained = run.state ? run.state->working_folder : "";
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
  } else if (monitor == "f1" || monitor == "recall" || monitor == "precision") {
    goal.kind = monitor == "f1" ? Kind::f1 : monitor == "recall" ? Kind::recall : Kind::precision;
    goal.label = index_of("monitor_class", config.train.monitor_class);
    goal.at_least = config.train.monitor_at_least;
  } else if (monitor == "cost") {
    goal.kind = Kind::cost;
    goal.rule.assign(classes.size() * classes.size(), 1);
    for (size_t c = 0; c < classes.size(); ++c) goal.rule[c * classes.size() + c] = 0;
    for (const MistakeCost& mistake : config.train.costs) {
      const int64_t row = index_of("costs", mistake.truth);
      const int64_t only = mistake.predicted.empty() ? -1 : index_of("costs", mistake.predicted);
      for (int64_t column = 0; column < goal.classes; ++column)
        if (only < 0 ? column != row : column == only)
          goal.rule[static_cast<size_t>(row * goal.classes + column)] = mistake.cost;
    }
  } else if (!multi_label && facts.class_weights != nullptr && data.has(Split::train)) {
    goal.rule = weights_of(*facts.class_weights, data.class_counts(), data.training().examples_per_epoch(), false);
  }
  if (goal.kind == Kind::given && goal.rule.empty()) return std::nullopt;
  return goal;
}

}  // namespace capstan
