// The model that the configuration of a run describes, with its parameters. tests/run/test_run.cpp.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "core/io/safetensors.hpp"
#include "data/tokenizers/tokenizer.hpp"
#include "models/summary.hpp"
#include "run/setup/run_config.hpp"

namespace capstan {

/// A model with its parameters.
class RunModel {
 public:
  /// With ParamMemory::none it only tells sizes and costs.
  RunModel(const RunConfig& config, int64_t vocabulary, int64_t classes, ParamMemory memory = ParamMemory::allocated);

  /// With the weights of a file that fits (check_model_fits()). One that reads texts has no values in params().
  RunModel(const RunConfig& config, int64_t vocabulary, int64_t classes, const SafetensorsFile& weights,
           ParamMemory memory);

  ParamStore& params() { return params_; }
  const ParamStore& params() const { return params_; }
  const Model& model() const { return *model_; }
  /// The model, if it predicts this; otherwise throws Error, naming the types that do. The first time that a model
  /// which decodes slowly is asked for to write, one line of the log says so.
  const Model& that_predicts(Predicts what) const;
  /// Throws Error for a model without blocks.
  const Stack& stack() const;
  std::optional<int64_t> position_limit() const { return model_->position_limit(); }
  /// Tells the model what it has to know of the data before its loss is computed: the training examples of each class
  /// and of all for balanced class weights (none: they are not balanced).
  void prepare(const std::vector<int64_t>& class_counts = {}, int64_t examples = 0);
  ModelSummary summary(int64_t length) const { return summarize(*model_, params_, length); }
  /// Bytes that a step keeps per token of texts of this length (models/summary.hpp).
  double kept_bytes(int64_t length) const { return capstan::kept_bytes(*model_, params_, length); }

 private:
  ParamStore params_;
  std::string name_;  // of the run, for messages
  const char* type_;  // of the model, as in a configuration
  Predicts predicts_;
  const char* command_;  // what such a model is for
  mutable std::atomic<bool> said_slow_ = false;
  std::unique_ptr<Model> model_;
};

/// Number of token ids of a run: those of its tokenizer and those that the data adds.
int64_t model_vocabulary(const RunConfig& config, const Tokenizer& tokenizer);

}  // namespace capstan
