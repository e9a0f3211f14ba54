// Predicts the hidden tokens of a batch; the output layer reads the chosen tokens only. tests/models/test_masking.cpp.
#include "models/masked_language_model.hpp"

#include "core/base/error.hpp"
#include "core/fused/linear.hpp"
#include "core/fused/loss.hpp"
#include "core/ops/math.hpp"
#include "core/ops/reduce.hpp"
#include "models/summary.hpp"

namespace capstan::CAPSTAN_PRECISION {

MaskedLanguageModel::MaskedLanguageModel(const Scope& scope, const MaskedLanguageModelConfig& config,
                                         int64_t vocabulary, int64_t maskable)
    : masking_(config.masking, (scope / "masking").random_key(), {maskable, static_cast<int32_t>(vocabulary)}),
      stack_(scope, config, {vocabulary + 1, /*causal=*/false}),
      output_(scope, stack_, config, vocabulary) {
  check(maskable <= vocabulary, "masked_language_model: {} of {} tokens can be masked", maskable, vocabulary);
}

Var MaskedLanguageModel::logits(const Ids& tokens, const Context& context) const {
  return state_logits(stack_.forward(tokens, context));
}

Var MaskedLanguageModel::state_logits(const Var& states) const {
  return linear(states, output_.weight(), output_.bias());
}

TaskLoss MaskedLanguageModel::loss(const Batch& batch, const Context& context) const {
  MaskedTokens masked = masking_.apply(batch, context.segments, context.training, context.step);
  if (masked.places.empty()) {  // no token was chosen: one ignored place gives all parameters a gradient of 0
    masked.places = {0};
    masked.targets = {ignored_target};
  }
  const Var chosen = states(masked.tokens, masked.places, context);
  CrossEntropyOptions options;
  options.ignored = ignored_target;
  options.count_correct = !context.training;
  const CrossEntropy loss = linear_cross_entropy(chosen, output_.weight(), output_.bias(),
                                                 Ids(Shape{chosen.dim(0)}, masked.targets), options);
  return {loss.sum, loss.targets, loss.correct};
}

/// The output layer reads only the chosen tokens, so its cost per token is multiplied by their share.
ModelSummary MaskedLanguageModel::summary(const ParamStore& store, int64_t length, DecodeStates states) const {
  ModelSummary summary = summarize_stack(stack_, store, length, states);
  LayerSummary& output = summary.part("output");
  const double width = static_cast<double>(stack_.config().width), share = masking().config().share;
  if (tied_output()) output.flops = 2 * width * static_cast<double>(stack_.shape().vocabulary);
  output.flops *= share;
  output.decode_flops = output.flops;
  output.activation_bytes = 2 * share * width * sizeof(real);  // the chosen states and their gradient
  return summary;
}

}  // namespace capstan::CAPSTAN_PRECISION
