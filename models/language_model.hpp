// Autoregressive language model: predicts every token from the preceding ones. In tests/models,
// test_decode.cpp checks that decoding gives forward()'s logits, test_prefix.cpp how sources of pairs are read, and
// test_parity.cpp compares losses with PyTorch's.
#pragma once

#include "models/model.hpp"
#include "models/stack.hpp"

namespace capstan {

/// What a token in the source of a pair (data.type: pairs) sees: the tokens before it, or all of the source.
enum class PrefixRule { causal, bidirectional };

inline std::vector<EnumName<PrefixRule>> enum_names(PrefixRule) {
  return {{PrefixRule::causal, "causal"}, {PrefixRule::bidirectional, "bidirectional"}};
}

struct LanguageModelConfig : ModelConfig, OutputConfig {
  static constexpr const char* type_name = "language-model";
  PrefixRule prefix = PrefixRule::causal;
};

template <class Fields>
void describe(Fields& f, LanguageModelConfig& c) {
  describe_model(f, c);
  describe_output(f, c);
  f("prefix", c.prefix, any(),
    "with data.type pairs: bidirectional = tokens of the source see all of it (not with aft-conv)");
}

void validate(const LanguageModelConfig& config, Problems& problems);

inline ModelFacts facts(const LanguageModelConfig& config) {
  ModelFacts facts = stack_facts(config);
  facts.is_causal = facts.takes_pairs = true;
  facts.takes_labels = false;
  facts.reads_sources = config.prefix != PrefixRule::causal;
  facts.command = "capstan generate";
  return facts;
}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

/// The sources of pairs, for Context::prefixes: each document up to and including its first token with a label. A
/// document without labels has no prefix.
Segments prefixes_of(const Segments& segments, const Ids& labels);

/// Next-token model. logits = states W^T with W the embedding's weight (tied) or output.weight (V, D), plus output.bias
/// if any.
class LanguageModel final : public Model {
 public:
  /// Make it, then finalize() the store of `scope`.
  LanguageModel(const Scope& scope, const LanguageModelConfig& config, int64_t vocabulary);

  /// tokens: (B, T) -> (B, T, V)
  Var logits(const Ids& tokens, const Context& context) const override;
  /// batch.labels: (B, T), the next token or ignored_target. The logits of the whole batch never exist at once. With
  /// `prefix: bidirectional`, the tokens of prefixes_of() the batch see each other.
  TaskLoss loss(const Batch& batch, const Context& context) const override;

  DecodeState make_state(int64_t batch, DecodeWeights weights = DecodeWeights::float32) const override {
    return stack_.make_state(batch, weights);
  }
  /// With `prefix: bidirectional`, each of the tokens sees all of them.
  using Model::prefill;
  Array prefill(const Ids& tokens, DecodeState& state, Array* every) const override;
  Array step(const Ids& tokens, DecodeState& state) const override;

  Var state_logits(const Var& states) const override;
  int64_t vocabulary() const override { return stack_.shape().vocabulary; }
  bool tied_output() const { return output_.tied(); }
  const Stack* find_stack() const override { return &stack_; }
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
