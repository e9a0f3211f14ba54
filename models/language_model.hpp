// Autoregressive language model: predicts every token from the preceding ones.
#pragma once

#include "models/model.hpp"
#include "models/token_output.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// The beginnings of documents up to and including their first token with a label, as Context::prefixes: the sources of pairs.
Segments prefixes_of(const Segments& segments, const Ids& labels);

/// Next-token model. logits = states W^T with W the embedding's weight (tied) or output.weight (V, D); no bias.
class LanguageModel final : public StackModel {
 public:
  /// Make it, then finalize() the store of `scope`.
  LanguageModel(const Scope& scope, const LanguageModelConfig& config, int64_t vocabulary);

  /// tokens: (B, T) -> (B, T, V)
  Var logits(const Ids& tokens, const Context& context) const override;
  /// batch.labels: (B, T), the next token or ignored_target. The logits of the whole batch never exist at once. With
  /// `prefix: bidirectional`, prefixes_of() the batch are read as a whole.
  TaskLoss loss(const Batch& batch, const Context& context) const override;

  /// Decoding; no gradients. All sequences of a state are at the same position.
  DecodeState make_state(int64_t batch, DecodeWeights weights = DecodeWeights::float32) const {
    return stack_.make_state(batch, weights);
  }
  /// tokens: (B, T), T >= 1 -> logits of the token after the last one, (B, V). `state` is fresh or reset. With
  /// `prefix: bidirectional`, the tokens are read as a whole.
  Array prefill(const Ids& tokens, DecodeState& state) const;
  /// tokens: (B) -> logits of their successors, (B, V). Throws Error past position_limit().
  Array step(const Ids& tokens, DecodeState& state) const;

  int64_t vocabulary() const { return stack_.shape().vocabulary; }
  bool tied_output() const { return output_.tied(); }
  const Stack& stack() const override { return stack_; }
  ModelSummary summary(const ParamStore& store, int64_t length, DecodeStates states) const override;

 private:
  Stack stack_;
  TokenOutput output_;
  bool prefix_;
};

inline std::unique_ptr<Model> make_model(const LanguageModelConfig& config, const Scope& scope,
                                         const ModelSizes& sizes) {
  return std::make_unique<LanguageModel>(scope, config, sizes.vocabulary);
}

}  // namespace capstan::CAPSTAN_PRECISION
