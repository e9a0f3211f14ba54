#include "apps/run_model.hpp"

#include <fstream>
#include <sstream>

#include "apps/config/config.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "train/checkpoint.hpp"

namespace capstan {
namespace fs = std::filesystem;

RunModel::RunModel(const RunConfig& config, int64_t vocabulary, int64_t classes) {
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
  if (!language_model_) throw Error("this run is a text-classifier: a language-model is needed here (capstan predict is for classifiers)");
  return *language_model_;
}

const TextClassifier& RunModel::text_classifier() const {
  if (!text_classifier_) throw Error("this run is a language-model: a text-classifier is needed here (capstan generate is for language models)");
  return *text_classifier_;
}

std::optional<int64_t> RunModel::position_limit() const {
  return language_model_ ? language_model_->position_limit() : text_classifier_->position_limit();
}

ModelSummary RunModel::summary(int64_t length) const {
  return language_model_ ? summarize(*language_model_, params_, length) : summarize(*text_classifier_, params_, length);
}

namespace {

/// Whole or not at all, whatever moment the process ends at.
void write_file(const fs::path& path, const std::string& text) {
  const std::string unfinished = path.string() + ".tmp";
  FileWriter file(unfinished);
  file.write(text);
  file.sync();
  file.close();
  rename_path(unfinished, path.string());
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) throw Error(fmt::format("{}: cannot be read: is this the folder of a run that capstan train has begun?", path.string()));
  return text.str();
}

/// The run folder of a checkpoint's folder, or the folder itself.
fs::path run_folder_of(const fs::path& where) {
  if (fs::exists(where / "config.yaml")) return where;
  for (fs::path folder = fs::absolute(where); folder.has_relative_path(); folder = folder.parent_path())
    if (fs::exists(folder / "config.yaml") && fs::exists(folder / "checkpoints")) return folder;
  throw Error(fmt::format("{}: there is no config.yaml here: give the folder of a run, such as runs/NAME", where.string()));
}

}  // namespace

void write_run_files(const fs::path& folder, const RunConfig& config, const Tokenizer& tokenizer,
                     const std::vector<std::string>& classes) {
  write_file(folder / "config.yaml", to_yaml(config));
  write_file(folder / "tokenizer.json", tokenizer.to_json());
  if (classes.empty()) return;
  std::string names;
  for (const std::string& name : classes) names += name + "\n";
  write_file(folder / "classes.txt", names);
}

SavedRun open_run(const fs::path& where) {
  SavedRun run;
  run.folder = run_folder_of(where);
  run.config = load_config<RunConfig>({(run.folder / "config.yaml").string()});
  run.tokenizer = Tokenizer::from_json(read_file(run.folder / "tokenizer.json"));
  if (std::holds_alternative<TextClassifierConfig>(run.config.model)) {
    std::istringstream names(read_file(run.folder / "classes.txt"));
    for (std::string name; std::getline(names, name);) run.classes.push_back(name);
  }
  run.model = std::make_unique<RunModel>(run.config, run.tokenizer->vocabulary_size(), static_cast<int64_t>(run.classes.size()));
  run.weights = find_model_file(where);
  load_model(run.weights, run.model->params());
  return run;
}

}  // namespace capstan
