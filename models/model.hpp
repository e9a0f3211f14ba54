// A model as a run has it, whatever its type. A type of model is a pair of files with
//   - a config struct with `type_name`, fields and describe(), validate(), and ModelFacts facts(const Config&),
//   - a class that derives from Model or StackModel,
//   - std::unique_ptr<Model> make_model(const Config&, const Scope&, const ModelSizes&),
// and an entry in the variant TaskConfig (run/setup/run_config.hpp).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/masking.hpp"
#include "models/stack.hpp"
#include "models/task.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// What the sizes of a model's parameters depend on besides its configuration.
struct ModelSizes {
  int64_t vocabulary;    // with what the data add
  int64_t added_tokens;  // those, the last of the vocabulary
  int64_t classes;
  bool multi_label = false;
};

/// What a model may have to know of the data before its loss is computed.
struct ModelData {
  const std::vector<int64_t>& class_counts;  // training examples of each class; none: they are not balanced
  int64_t examples;                          // of all classes
  std::function<WordEdges()> words;          // of the vocabulary
};

struct ModelSummary;
/// Decode states take memory to be measured.
enum class DecodeStates { measured, left_out };

class Model {
 public:
  virtual ~Model() = default;
  virtual void prepare(const ModelData&) {}
  /// Of a classifier that reads texts, not tokens: (N, C).
  virtual Array class_probabilities(const std::vector<std::string>& texts) const;
  /// Costs for documents of `length` tokens: 2 FLOPs per weight of a matrix product, and what mixing takes. Activation
  /// memory is an estimate from what the ops keep. The store needs memory for decode states only.
  virtual ModelSummary summary(const ParamStore& store, int64_t length, DecodeStates states) const = 0;
};

/// A model with blocks, trained in steps.
class StackModel : public Model, public Task {
 public:
  virtual const Stack& stack() const = 0;
  /// The longest document the model can read, if there is a limit.
  std::optional<int64_t> position_limit() const { return stack().position_limit(); }
  /// tokens: (B, T) -> (B, T, V), or of a classifier (B, C).
  virtual Var logits(const Ids& tokens, const Context& context) const = 0;
  /// Of the same shape.
  virtual Array probabilities(const Var& logits) const;
  /// Of one text, D numbers: the mean of its tokens' states, or what a classifier's head reads.
  virtual std::vector<float> text_vector(const Ids& tokens, const Context& context) const;
  /// Of every block.
  virtual std::vector<std::vector<MixingWeights>> mixing_weights(const Ids& tokens, const Context& context) const {
    return stack().mixing_weights(tokens, context);
  }
};

}  // namespace capstan::CAPSTAN_PRECISION
