// A run folder is read in an order in which nothing is allocated by a size that a file states before the file is known
// to fit: configuration, tokenizer, classes, then a model without memory that the weights are compared with, and only
// then the model. tests/cli/runs/test_bad_runs.cpp.
#include "run/setup/saved_run.hpp"

#include <sstream>

#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "core/io/log.hpp"
#include "data/batches/text_example.hpp"
#include "data/files/token_row.hpp"
#include "data/tokenizers/tokenizer_kinds.hpp"
#include "models/linear_classifier.hpp"
#include "run/setup/run_config.hpp"
#include "run/yaml/config.hpp"
#include "train/checkpoints/checkpoint.hpp"
#include "train/checkpoints/open_model.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;

/// A file that every run has.
std::string read_run_file(const fs::path& path) {
  if (!fs::exists(path))
    throw Error(
        fmt::format("{}: cannot be read: is this the folder of a run that capstan train has started?", path.string()));
  return read_file(path.string());
}

/// Throws Error if the checkpoint was trained with another model, tokenizer or other classes than the run folder's.
void check_trained_with(const SavedRun& run, const std::string& tokenizer_text, const fs::path& checkpoint) {
  const auto refuse = [&](const char* file) {
    throw Error(
        fmt::format("{}: this is not what {} was trained with: the file was changed, or is from another run; use a "
                    "copy of the original",
                    (run.folder / file).string(), checkpoint.string()));
  };
  const Identity& trained = run.state->identity;
  if (const auto model = trained.find("model"); model != trained.end())  // keys that were added since have defaults
    if (to_yaml(load_config_text<TaskConfig>(model->second, checkpoint.string(), "model")) != to_yaml(run.config.model))
      refuse("config.yaml");
  const auto tokenizer = trained.find("tokenizer"), classes = trained.find("classes");
  const auto names = [&](const std::string& fingerprint) {
    return tokenizer->second.find(fingerprint) != std::string::npos;
  };
  // The fingerprint is that of the text which the tokenizer writes. The file usually is this text, and hashing it takes
  // less time than writing it anew.
  if (tokenizer != trained.end() && !names(Fingerprint().add(tokenizer_text).hex()) &&
      !names(run.tokenizer->fingerprint()))
    refuse("tokenizer.json");
  // Other models may have labelled data, too, but no use for the labels.
  const bool has_classes = facts_of(run.config.model).classifies();
  if (has_classes && classes != trained.end() && classes->second != identity_of(run.classes)) refuse("classes.txt");
}

}  // namespace

std::optional<int32_t> start_token(const SavedRun& run) {
  if (facts_of(run.config.data).has_labels) return std::nullopt;
  return end_of_document(run).value_or(run.tokenizer->start_token());
}

std::optional<int32_t> end_of_document(const SavedRun& run) {
  if (!facts_of(run.config.data).has_documents) return std::nullopt;
  return static_cast<int32_t>(run.tokenizer->vocabulary_size());
}

std::vector<int32_t> prompt_of(const SavedRun& run, std::string_view text, const std::string& place) {
  const SourceFacts facts = facts_of(run.config.data);
  std::vector<int32_t> prompt = encode_text({text}, *run.tokenizer, facts.text, place);
  if (const auto start = start_token(run)) prompt.insert(prompt.begin(), *start);
  if (facts.has_pairs) prompt.push_back(*end_of_document(run) + 1);
  return prompt;
}

std::string identity_of(const Tokenizer& tokenizer) {
  return fmt::format("{}, {} tokens, fingerprint {}", tokenizer.kind(), tokenizer.vocabulary_size(),
                     tokenizer.fingerprint());
}

std::string identity_of(const std::vector<std::string>& classes) {
  std::string names;
  for (const std::string& name : classes) names += name + "\n";
  return names;
}

void write_run_files(const fs::path& folder, const RunConfig& config, const Tokenizer& tokenizer,
                     const std::vector<std::string>& classes) {
  replace_file((folder / "config.yaml").string(), to_yaml(config));
  replace_file((folder / "tokenizer.json").string(), tokenizer.to_json());
  if (!classes.empty()) replace_file((folder / "classes.txt").string(), identity_of(classes));
}

std::vector<std::string> read_classes(const fs::path& folder) {
  std::istringstream names(read_run_file(folder / "classes.txt"));
  std::vector<std::string> classes;
  for (std::string name; std::getline(names, name);) classes.push_back(name);
  return classes;
}

fs::path run_folder_of(const fs::path& where) {
  if (fs::exists(where / "config.yaml")) return where;
  for (fs::path folder = fs::absolute(where); folder.has_relative_path(); folder = folder.parent_path())
    if (fs::exists(folder / "config.yaml") && fs::exists(folder / "checkpoints")) return folder;
  throw Error(no_run(where));
}

SavedRun read_run_files(const fs::path& folder, const SafetensorsFile& weights) {
  SavedRun run;
  run.folder = folder;
  run.weights = weights.path();
  run.config = load_run_config(folder);
  const fs::path tokenizer = folder / "tokenizer.json", checkpoint = fs::path(weights.path()).parent_path();
  const std::string tokenizer_text = read_run_file(tokenizer);
  run.tokenizer = tokenizer_from_json(tokenizer_text, tokenizer.string());
  if (facts_of(run.config.model).classifies()) run.classes = read_classes(folder);
  if (fs::exists(checkpoint / state_name)) {
    run.state = read_state(checkpoint);
    check_trained_with(run, tokenizer_text, checkpoint);
  }
  check_model_fits(weights, RunModel(run.config, model_vocabulary(run.config, *run.tokenizer),
                                     static_cast<int64_t>(run.classes.size()), ParamMemory::none)
                                .params());
  return run;
}

SavedRun open_run(const fs::path& where, ParamMemory memory) {
  const fs::path folder = run_folder_of(where);
  const SafetensorsFile weights = open_model(where);
  if (weights.checksum().empty())
    log_warning(fmt::format("{}: the file has no checksum: it was changed after training, or another program wrote it",
                            weights.path()));
  SavedRun run = read_run_files(folder, weights);
  run.model = std::make_unique<RunModel>(run.config, model_vocabulary(run.config, *run.tokenizer),
                                         static_cast<int64_t>(run.classes.size()), weights, memory);
  run.model->prepare();
  const bool multi_label = facts_of(run.config.data).multi_label();
  const std::vector<double> rule = run.state ? run.state->rule : std::vector<double>{};
  const size_t count = run.classes.size();
  if (!rule.empty() && rule.size() != count && (multi_label || rule.size() != count * count))
    throw Error(fmt::format("{}: the rule has {} numbers for {} classes: use another checkpoint", run.weights,
                            rule.size(), count));
  if (const LinearClassifier* const linear = run.model->model().find_linear()) run.thresholds = linear->thresholds();
  if (multi_label && run.thresholds.empty()) run.thresholds = rule;
  if (!multi_label) run.rule = rule;
  if (multi_label && run.thresholds.empty())
    run.thresholds.assign(run.classes.size(),
                          run.state ? run.state->threshold.value_or(default_threshold) : default_threshold);
  return run;
}

}  // namespace capstan
