#include "apps/runs/run_model.hpp"

#include <sstream>

#include "apps/config/config.hpp"
#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "data/tokenizers/tokenizer_kinds.hpp"
#include "train/runs/checkpoint.hpp"

namespace capstan {
namespace fs = std::filesystem;

RunModel::RunModel(const RunConfig& config, int64_t vocabulary, int64_t classes, ParamMemory memory)
    : params_(memory), name_(config.name) {
  const Scope scope(params_, static_cast<uint64_t>(config.seed));
  if (const auto* model = std::get_if<LanguageModelConfig>(&config.model)) {
    language_model_ = std::make_unique<LanguageModel>(scope, *model, vocabulary);
  } else {
    text_classifier_ =
        std::make_unique<TextClassifier>(scope, std::get<TextClassifierConfig>(config.model), vocabulary, classes);
  }
  params_.finalize();
}

const Task& RunModel::task() const {
  if (language_model_) return *language_model_;
  return *text_classifier_;
}

const LanguageModel& RunModel::language_model() const {
  if (!language_model_)
    throw Error(fmt::format(
        "the run {} is a text-classifier, but this needs a language-model; for classifiers, use capstan predict",
        name_));
  return *language_model_;
}

const TextClassifier& RunModel::text_classifier() const {
  if (!text_classifier_)
    throw Error(fmt::format(
        "the run {} is a language-model, but this needs a text-classifier; for language models, use capstan generate",
        name_));
  return *text_classifier_;
}

std::optional<int64_t> RunModel::position_limit() const {
  return language_model_ ? language_model_->position_limit() : text_classifier_->position_limit();
}

ModelSummary RunModel::summary(int64_t length) const {
  return language_model_ ? summarize(*language_model_, params_, length) : summarize(*text_classifier_, params_, length);
}

double RunModel::kept_bytes(int64_t length) const {
  return language_model_ ? capstan::kept_bytes(*language_model_, params_, length)
                         : capstan::kept_bytes(*text_classifier_, params_, length);
}

const Stack& RunModel::stack() const { return language_model_ ? language_model_->stack() : text_classifier_->stack(); }

std::vector<std::vector<MixingWeights>> RunModel::mixing_weights(const Ids& tokens) const {
  const Context context = Context::evaluation(tokens.dim(0), tokens.dim(1));
  return language_model_ ? stack().mixing_weights(tokens, context) : text_classifier_->mixing_weights(tokens, context);
}

namespace {

/// A file that every run has.
std::string read_run_file(const fs::path& path) {
  if (!fs::exists(path))
    throw Error(
        fmt::format("{}: cannot be read: is this the folder of a run that capstan train has started?", path.string()));
  return read_file(path.string());
}

/// The run folder of a checkpoint's folder, or the folder itself.
fs::path run_folder_of(const fs::path& where) {
  if (fs::exists(where / "config.yaml")) return where;
  for (fs::path folder = fs::absolute(where); folder.has_relative_path(); folder = folder.parent_path())
    if (fs::exists(folder / "config.yaml") && fs::exists(folder / "checkpoints")) return folder;
  throw Error(
      fmt::format("{}: there is no config.yaml here: give the folder of a run, such as runs/NAME", where.string()));
}

/// Throws Error if the checkpoint was trained with another tokenizer or other classes than those of the run folder.
void check_trained_with(const SavedRun& run) {
  const fs::path checkpoint = fs::path(run.weights).parent_path();
  if (!fs::exists(checkpoint / "state.json")) return;  // weights alone, copied from somewhere
  const Identity trained = read_state(checkpoint).identity;
  const auto refuse = [&](const char* file) {
    throw Error(
        fmt::format("{}: this is not what {} was trained with: the file was changed, or is from another run; use a "
                    "copy of the original",
                    (run.folder / file).string(), checkpoint.string()));
  };
  const auto tokenizer = trained.find("tokenizer"), classes = trained.find("classes");
  if (tokenizer != trained.end() && tokenizer->second.find(run.tokenizer->fingerprint()) == std::string::npos)
    refuse("tokenizer.json");
  if (classes != trained.end() && classes->second != identity_of(run.classes)) refuse("classes.txt");
}

}  // namespace

int64_t model_vocabulary(const RunConfig& config, const Tokenizer& tokenizer) {
  return tokenizer.vocabulary_size() + facts_of(config.data).added_tokens;
}

int32_t start_token(const SavedRun& run) { return end_of_document(run).value_or(run.tokenizer->start_token()); }

std::optional<int32_t> end_of_document(const SavedRun& run) {
  if (!facts_of(run.config.data).has_documents) return std::nullopt;
  return static_cast<int32_t>(run.tokenizer->vocabulary_size());
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

SavedRun open_run(const fs::path& where) {
  SavedRun run;
  run.folder = run_folder_of(where);
  run.config = load_config<RunConfig>({(run.folder / "config.yaml").string()});
  const fs::path tokenizer = run.folder / "tokenizer.json";
  run.tokenizer = tokenizer_from_json(read_run_file(tokenizer), tokenizer.string());
  if (std::holds_alternative<TextClassifierConfig>(run.config.model)) {
    std::istringstream names(read_run_file(run.folder / "classes.txt"));
    for (std::string name; std::getline(names, name);) run.classes.push_back(name);
  }
  run.weights = find_model_file(where);
  check_trained_with(run);
  run.model = std::make_unique<RunModel>(run.config, model_vocabulary(run.config, *run.tokenizer),
                                         static_cast<int64_t>(run.classes.size()));
  load_model(run.weights, run.model->params());
  return run;
}

}  // namespace capstan
