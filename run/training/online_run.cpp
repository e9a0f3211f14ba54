// OnlineRun, for partial_fit() of the Python package: a run folder whose classifier learns text by text.
// python/tests/test_partial_fit.py and tests/train/linear/test_online_classifier.cpp.
#include "run/training/online_run.hpp"

#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "data/batches/labelled_texts.hpp"
#include "data/tokenizers/tokenizer_kinds.hpp"
#include "run/setup/file_safety.hpp"
#include "run/yaml/config_writer.hpp"
#include "train/checkpoints/checkpoint_files.hpp"
#include "train/linear/calibration.hpp"

namespace capstan {
namespace fs = std::filesystem;

namespace {

/// The model of a configuration. Throws ConfigError for settings that need all texts before the first one is learnt.
const LinearClassifierConfig& online_model(const RunConfig& config) {
  const auto* const model = std::get_if<LinearClassifierConfig>(&config.model);
  if (model == nullptr)
    throw ConfigError(fmt::format("model.type: only a {} learns from texts as they come, not a {}; call fit()",
                                  LinearClassifierConfig::type_name, type_of(config.model)));
  if (std::holds_alternative<BalancedClasses>(model->class_weights))
    throw ConfigError(
        "model.class_weights: balanced weights need the number of texts of each class, which is not known before all "
        "have come; list the weights");
  if (!config.train.init_from.empty()) throw ConfigError("train.init_from: open that run and go on from it instead");
  return *model;
}

std::shared_ptr<const Tokenizer> online_tokenizer(const RunConfig& config) {
  online_model(config);
  const auto* const data = std::get_if<LabelledSourceConfig>(&config.data);
  if (data == nullptr) throw ConfigError("data.type: a classifier that learns from texts as they come needs labelled");
  if (learns_from_texts(data->tokenizer))
    throw ConfigError("data.tokenizer: this type is learnt from all texts; give {type: byte}");
  return make_tokenizer(data->tokenizer, {});
}

}  // namespace

OnlineRun::OnlineRun(RunConfig config, std::vector<std::string> classes)
    : config_(std::move(config)), tokenizer_(online_tokenizer(config_)), classes_(std::move(classes)) {
  set_threads(static_cast<int>(config_.threads));
  use_kernels(config_.train);
  if (classes_.size() < 2) throw ConfigError(fmt::format("classes: two or more are needed, not {}", classes_.size()));
  classifier_ = std::make_shared<OnlineClassifier>(online_model(config_), static_cast<int64_t>(classes_.size()),
                                                   facts_of(config_.data).multi_label());
}

OnlineRun::OnlineRun(const SavedRun& run) : config_(run.config), tokenizer_(run.tokenizer), classes_(run.classes) {
  if (run.state && run.state->slim)
    throw Error(fmt::format("{}: a slim run is for prediction alone; go on from the run itself", run.folder.string()));
  classifier_ = std::make_shared<OnlineClassifier>(online_model(config_), static_cast<int64_t>(classes_.size()),
                                                   facts_of(config_.data).multi_label());
  std::optional<SafetensorsFile> saved;
  if (run.state && run.state->files.count(online_name) > 0)
    saved = open_saved_file(fs::path(run.weights).parent_path(), *run.state, online_name);
  classifier_->read(SafetensorsFile(run.weights), saved ? &*saved : nullptr);
}

std::string OnlineRun::read(const InputText& text) const {
  return example_text({text.columns.begin(), text.columns.end()}, *tokenizer_, facts_of(config_.data).text, text.place);
}

void OnlineRun::learn(const std::vector<InputText>& texts, const std::vector<LabelSet>& labels,
                      const std::vector<double>& weights) {
  check(texts.size() == labels.size() && (weights.empty() || weights.size() == texts.size()),
        "OnlineRun: {} texts, {} labels, {} weights", texts.size(), labels.size(), weights.size());
  std::vector<std::string> read_texts = encode_all(texts, [&](const InputText& text) { return read(text); });
  std::vector<OnlineText> examples;
  for (size_t i = 0; i < texts.size(); ++i)
    if (!read_texts[i].empty())
      examples.push_back({std::move(read_texts[i]), labels[i], weights.empty() ? 1 : weights[i]});
  const std::lock_guard<std::shared_mutex> lock(*mutex_);
  classifier_->learn(examples);
}

int64_t OnlineRun::texts() const {
  const std::shared_lock<std::shared_mutex> lock(*mutex_);
  return classifier_->texts();
}

std::vector<std::vector<float>> OnlineRun::decision_values(const std::vector<InputText>& texts) const {
  const std::vector<std::string> read_texts = encode_all(texts, [&](const InputText& text) { return read(text); });
  const std::shared_lock<std::shared_mutex> lock(*mutex_);
  return classifier_->logits(read_texts);
}

std::vector<std::vector<float>> OnlineRun::probabilities(const std::vector<InputText>& texts) const {
  std::vector<std::vector<float>> rows;
  for (const std::vector<float>& row : decision_values(texts))
    rows.push_back(probabilities_of({row.begin(), row.end()}, facts_of(config_.data).multi_label()));
  return rows;
}

DecisionRule OnlineRun::rule() const {
  const auto* const listed = std::get_if<ListedWeights>(&classifier_->config().class_weights);
  return listed == nullptr || facts_of(config_.data).multi_label() ? DecisionRule() : listed->weights;
}

void OnlineRun::write(const fs::path& folder) const {
  refuse_file_of_run(folder);
  const std::shared_lock<std::shared_mutex> lock(*mutex_);
  RunConfig config = config_;
  config.model = classifier_->config();
  RunModel model(config, model_vocabulary(config, *tokenizer_), static_cast<int64_t>(classes_.size()));
  classifier_->fill(model.params());
  RunState state;
  state.step = state.epoch = state.best_step = state.validated_step = 1;
  state.seed = static_cast<uint64_t>(config.seed);
  state.identity = {
      {"model", to_yaml(config.model)}, {"tokenizer", identity_of(*tokenizer_)}, {"classes", identity_of(classes_)}};
  state.rule = rule();
  Optimizer none(config.train.optimizer, model.params(), {{0, model.params().flat_size()}});
  write_new_folder(new_folder(folder.string()), [&](const fs::path& part) {
    write_run_files(part, config, *tokenizer_, classes_);
    write_only_checkpoint(part / "checkpoints", state, [&](const fs::path& checkpoint) {
      auto files = write_tensor_files(checkpoint, {model.params(), none, state});
      files[online_name] = classifier_->write((checkpoint / online_name).string());
      return files;
    });
  });
}

}  // namespace capstan
