// A model as a run has it, whatever its type. A type of model is a pair of files with
//   - a config struct with `type_name`, fields and describe(), validate() for rules that join several fields, and
//     ModelFacts facts(const Config&),
//   - a class that derives from Model,
//   - std::unique_ptr<Model> make_model(const Config&, const Scope&, const ModelSizes&),
// with an include and an entry in the variant TaskConfig (models/task_config.hpp). docs/adding.md has an example.
// tests/models/test_matrix.cpp trains, evaluates and asks every type with every system.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/array/batch.hpp"
#include "core/autograd/var.hpp"
#include "core/io/safetensors.hpp"
#include "models/stack.hpp"
#include "models/task.hpp"
#include "nn/layers/context.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// What the sizes of a model's parameters depend on besides its configuration.
struct ModelSizes {
  int64_t vocabulary;    // with what the data add
  int64_t added_tokens;  // ids of the vocabulary, its last, that the data add to the tokenizer's
  int64_t classes;
  bool multi_label = false;
};

/// What a model may need to know about the data before its loss is computed.
struct ModelData {
  const std::vector<int64_t>& class_counts;  // training examples of each class; none: they are not balanced
  int64_t examples;                          // training examples of all classes
  ParamStore* params = nullptr;              // the model's, for initial values that depend on the data; null: none do
};

struct ModelSummary;
class LinearClassifier;
/// Whether a summary measures decode states, which allocates them.
enum class DecodeStates { measured, left_out };

/// Which functions a type of model has to override follows from its ModelFacts; the others throw std::logic_error.
class Model : public Task {
 public:
  /// Takes what the model needs of the data; called once, before training.
  virtual void prepare(const ModelData&) {}
  /// Costs for documents of `length` tokens: 2 FLOPs per weight of a matrix product, and what mixing takes. Activation
  /// memory is an estimate from what the ops keep. The store needs memory for decode states only.
  virtual ModelSummary summary(const ParamStore& store, int64_t length, DecodeStates states) const;

  /// Embedding and blocks; null: the model has none.
  virtual const Stack* find_stack() const { return nullptr; }
  /// Embedding and blocks of a model that has them.
  const Stack& stack() const;
  /// The longest document the model can read, if there is a limit.
  std::optional<int64_t> position_limit() const;

  // Trained in steps.
  TaskLoss loss(const Batch& batch, const Context& context) const override;
  /// tokens: (B, T) -> (B, T, V), or of a classifier (B, C).
  virtual Var logits(const Ids& tokens, const Context& context) const;

  // A classifier that reads texts.
  /// Copies what it needs of its parameters from the file, so that the parameters need no memory in the store.
  virtual void take_tables(const SafetensorsFile& file);
  /// What reads them; null: the model reads tokens.
  virtual const LinearClassifier* find_linear() const { return nullptr; }
  /// The classifier of a model that is one.
  const LinearClassifier& linear_classifier() const;

  // A classifier of either kind.
  virtual int64_t classes() const;
  /// The probabilities that belong to the logits, in the shape of `logits`.
  virtual Array probabilities(const Var& logits) const;

  // A model with blocks.
  /// A vector of D elements for one text: the mean of its tokens' states, or what a classifier's head reads.
  virtual std::vector<float> text_vector(const Ids& tokens, const Context& context) const;
  /// The mixing weights of every block: how much each token takes from each other one (nn/mixer/mixer.hpp).
  virtual std::vector<std::vector<MixingWeights>> mixing_weights(const Ids& tokens, const Context& context) const;

  /// The states (N, D) of N tokens, given as indices into all B T tokens.
  Var states(const Ids& tokens, const std::vector<int32_t>& places, const Context& context) const;

  // A model that predicts tokens, the next or hidden ones.
  /// The logits (N, V) of states (N, D).
  virtual Var state_logits(const Var& states) const;

  // A model that predicts hidden tokens.
  /// The token that the model reads in place of a hidden one.
  virtual int32_t mask_token() const;

  // A model that predicts the next token, for models/generation; no gradients.
  virtual int64_t vocabulary() const;
  virtual DecodeState make_state(int64_t batch, DecodeWeights weights) const;
  /// The next tokens of sequences at one position: (B, T), T >= 1 -> logits of the token after the last one, (B, V).
  /// `every`, unless null, gets the logits after each token, (B, T, V).
  virtual Array prefill(const Ids& tokens, DecodeState& state, Array* every) const;
  Array prefill(const Ids& tokens, DecodeState& state) const { return prefill(tokens, state, nullptr); }
  /// The next token of the first n sequences, at any positions: (n) -> logits of their successors, (n, V), each row
  /// with the same bits alone and among others. Throws Error past position_limit().
  virtual Array step(const Ids& tokens, DecodeState& state) const;
};

}  // namespace capstan::CAPSTAN_PRECISION
