// Opens the data of a trained run, which must be cut as in training: refuse_other_cut(). tests/cli/runs/test_eval.cpp.
#include "run/setup/saved_data.hpp"

#include <filesystem>
#include <set>

#include "core/base/error.hpp"
#include "core/base/out_of_memory.hpp"
#include "core/strings/strings.hpp"
#include "run/setup/run_data.hpp"
#include "run/setup/saved_config.hpp"
#include "run/setup/splits.hpp"
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

/// Throws ConfigError where other texts of the training data are held out than when the run was trained: it has learnt
/// some of them.
void refuse_other_cut(const RunConfig& trained, const RunConfig& evaluated) {
  static const std::set<std::string> keys{"data.valid_fraction", "data.test_fraction", "data.folds", "data.fold",
                                          "data.split"};
  const bool held = is_held_out(Split::valid, evaluated.data) || is_held_out(Split::test, evaluated.data);
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
    return open_source(only ? without_missing_files(run.config.data, *only) : run.config.data, inputs);
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

}  // namespace capstan
