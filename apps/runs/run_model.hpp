// The model of a run, and how both are found again.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/runs/run_config.hpp"
#include "data/tokenizers/tokenizer.hpp"
#include "models/language_model.hpp"
#include "models/summary.hpp"
#include "models/text_classifier.hpp"

namespace capstan {

/// A model with its parameters; one of the two pointers is set.
class RunModel {
 public:
  RunModel(const RunConfig& config, int64_t vocabulary, int64_t classes);

  ParamStore& params() { return params_; }
  const ParamStore& params() const { return params_; }
  const Task& task() const;
  /// Throws Error naming what was wanted when the model is of the other kind.
  const LanguageModel& language_model() const;
  const TextClassifier& text_classifier() const;
  /// For class weights that are balanced; nothing for others and for language models.
  void balance_classes(const std::vector<int64_t>& class_counts) {
    if (text_classifier_) text_classifier_->balance(class_counts);
  }
  bool is_language_model() const { return language_model_ != nullptr; }
  std::optional<int64_t> position_limit() const;
  ModelSummary summary(int64_t length) const;
  const Stack& stack() const;
  /// Of every block, for evaluation of one batch.
  std::vector<std::vector<MixingWeights>> mixing_weights(const Ids& tokens) const;

 private:
  ParamStore params_;
  std::string name_;  // the run's
  std::unique_ptr<LanguageModel> language_model_;
  std::unique_ptr<TextClassifier> text_classifier_;
};

/// Ids that the model of a run must know: its tokenizer's and those that the data adds to them.
int64_t model_vocabulary(const RunConfig& config, const Tokenizer& tokenizer);

/// Writes a file whole or not at all, whatever moment the process ends at.
void write_whole_file(const std::filesystem::path& path, const std::string& text);

/// How a tokenizer and a list of classes are told from others: a checkpoint records both.
std::string identity_of(const Tokenizer& tokenizer);
std::string identity_of(const std::vector<std::string>& classes);

/// What a run folder keeps beside its checkpoints: config.yaml, tokenizer.json and, for classifiers, classes.txt. They
/// are all that predict and generate need besides the weights.
void write_run_files(const std::filesystem::path& folder, const RunConfig& config, const Tokenizer& tokenizer,
                     const std::vector<std::string>& classes);

/// A trained model taken out of its run folder.
struct SavedRun {
  std::filesystem::path folder;
  RunConfig config;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::vector<std::string> classes;
  std::unique_ptr<RunModel> model;
  std::string weights;  // the file they came from
};

/// `where`: a run folder (best checkpoint, else the last) or the folder of one of its checkpoints. Throws Error when
/// something is missing or damaged, naming the file.
SavedRun open_run(const std::filesystem::path& where);

/// The token before a text's first one, as the run's model was trained.
int32_t start_token(const SavedRun& run);
/// The token by which the run's model ends a document; none when it was trained without documents.
std::optional<int32_t> end_of_document(const SavedRun& run);

}  // namespace capstan
