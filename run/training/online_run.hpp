// A run of a linear classifier that learns from texts as they come: partial_fit() of the Python package. The file
// online.safetensors must stay readable, since a run that is opened goes on from it. python/tests/test_partial_fit.py
// and tests/train/linear/test_online_classifier.cpp hold it.
#pragma once

#include <filesystem>
#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

#include "run/inputs/input_text.hpp"
#include "run/setup/saved_run.hpp"
#include "train/linear/online_classifier.hpp"

namespace capstan {

/// The file in the folder of the checkpoint that has what is needed to go on learning.
constexpr const char* online_name = "online.safetensors";

/// Several threads may call methods at the same time: learn() waits for the others, and they wait for it. Copies share
/// classifier and mutex.
class OnlineRun {
 public:
  /// A classifier that has learnt nothing. Throws ConfigError unless the configuration is that of a linear classifier
  /// without train.init_from whose weights of classes are equal or listed.
  OnlineRun(RunConfig config, std::vector<std::string> classes);
  /// Goes on from a run of a linear classifier: as it was, if write() wrote it, else with what its weights tell.
  explicit OnlineRun(const SavedRun& run);

  /// `labels`: the numbers of classes, ascending, by text. Texts without tokens are left out. Throws TextError.
  void learn(const std::vector<InputText>& texts, const std::vector<LabelSet>& labels,
             const std::vector<double>& weights);
  int64_t texts() const;

  std::vector<std::vector<float>> decision_values(const std::vector<InputText>& texts) const;
  std::vector<std::vector<float>> probabilities(const std::vector<InputText>& texts) const;
  const std::vector<std::string>& classes() const { return classes_; }
  /// The rule of decisions that the weights of classes give; empty without weights.
  DecisionRule rule() const;

  /// Writes a new run folder.
  void write(const std::filesystem::path& folder) const;

 private:
  std::string read(const InputText& text) const;

  RunConfig config_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<std::string> classes_;
  std::shared_ptr<OnlineClassifier> classifier_;
  std::shared_ptr<std::shared_mutex> mutex_ = std::make_shared<std::shared_mutex>();
};

}  // namespace capstan
