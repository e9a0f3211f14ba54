// Masked language model: predicts hidden tokens from those around them. tests/models/test_masking.cpp checks which
// tokens are hidden and what the loss is.
#pragma once

#include <algorithm>

#include "models/masking.hpp"
#include "models/model.hpp"
#include "models/stack.hpp"

namespace capstan {

struct MaskedLanguageModelConfig : ModelConfig, OutputConfig {
  static constexpr const char* type_name = "masked-language-model";
  MaskingConfig masking;
};

template <class Fields>
void describe(Fields& f, MaskedLanguageModelConfig& c) {
  describe_model(f, c);
  describe_output(f, c);
  f("mask_share", c.masking.share, between(0.001, 1),
    "share of the tokens that are to be predicted from those around them; of these, 80 % are read as the mask token "
    "and "
    "10 % as a random one");
}

inline void validate(const MaskedLanguageModelConfig& config, Problems& problems) {
  validate(static_cast<const ModelConfig&>(config), problems);
  validate_output(config, config, problems);
}

inline ModelFacts facts(const MaskedLanguageModelConfig& config) {
  ModelFacts facts = stack_facts(config);
  facts.predicts = Predicts::hidden_tokens;
  facts.own_token = "mask";
  return facts;
}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

/// Bidirectional stack and scores of every token (Devlin et al. 2019, arXiv 1810.04805, without sentence pairs). The
/// mask token is the id after the vocabulary: embed.weight is (V + 1, D). Other parameters are named as those of a
/// language model, so that stacks of all tasks have the same names. With a tied output the mask token has a logit, too.
class MaskedLanguageModel final : public Model {
 public:
  /// Make it, then finalize() the store of `scope`. Tokens [0, maskable) of the vocabulary can be masked; what the data
  /// add to the tokenizer's, such as the end of a document, cannot.
  MaskedLanguageModel(const Scope& scope, const MaskedLanguageModelConfig& config, int64_t vocabulary,
                      int64_t maskable);

  /// tokens: (B, T) -> (B, T, V), or V + 1 with a tied output. The places to be filled hold mask_token().
  Var logits(const Ids& tokens, const Context& context) const override;
  Var state_logits(const Var& states) const override;
  /// The loss of the tokens that Masking chooses; logits exist at their places only, and never all at once.
  /// batch.labels: (B, T) as for a language model, where ignored_target marks context tokens; otherwise unused.
  TaskLoss loss(const Batch& batch, const Context& context) const override;

  const Masking& masking() const { return masking_; }
  int32_t mask_token() const override { return masking_.tokens().mask; }
  bool tied_output() const { return output_.tied(); }
  const Stack* find_stack() const override { return &stack_; }
  ModelSummary summary(const ParamStore& store, int64_t length, DecodeStates states) const override;

 private:
  Masking masking_;
  Stack stack_;
  TokenOutput output_;
};

inline std::unique_ptr<Model> make_model(const MaskedLanguageModelConfig& config, const Scope& scope,
                                         const ModelSizes& sizes) {
  return std::make_unique<MaskedLanguageModel>(scope, config, sizes.vocabulary,
                                               std::max<int64_t>(1, sizes.vocabulary - sizes.added_tokens));
}

}  // namespace capstan::CAPSTAN_PRECISION
