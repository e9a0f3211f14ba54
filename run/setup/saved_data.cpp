// Opens the data of a trained run, which must be cut as in training: require_same_cut(). tests/cli/runs/test_eval.cpp.
#include "run/setup/saved_data.hpp"

#include <algorithm>
#include <filesystem>

#include "core/base/error.hpp"
#include "core/base/out_of_memory.hpp"
#include "core/strings/strings.hpp"
#include "run/setup/run_data.hpp"
#include "run/setup/saved_config.hpp"
#include "run/setup/splits.hpp"
#include "run/yaml/config_diff.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;

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

}  // namespace capstan
