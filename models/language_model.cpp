#include "models/language_model.hpp"

#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "core/ops/linear.hpp"
#include "core/ops/loss.hpp"
#include "core/ops/shape.hpp"

namespace capstan::CAPSTAN_PRECISION {

LanguageModel::LanguageModel(const Scope& scope, const LanguageModelConfig& config, int64_t vocabulary)
    : stack_(scope, config, {vocabulary, /*causal=*/true}) {
  if (config.tied_output)
    scope.store().alias((scope / "output" / "weight").path(), (scope / "embed" / "weight").path());
  else
    output_ = std::make_unique<Linear>(model_scope(scope, config) / "output",
                                       LinearConfig{config.width, vocabulary, /*bias=*/false, 1, /*output=*/true});
}

Var LanguageModel::logits(const Ids& tokens, const Context& context) const {
  return linear(stack_.forward(tokens, context), output_weight());
}

TaskLoss LanguageModel::loss(const Batch& batch, const Context& context) const {
  check(batch.labels.shape() == batch.tokens.shape(), "language_model: labels {} do not match {}", batch.labels.shape(),
        batch.tokens.shape());
  CrossEntropyOptions options;
  options.ignored = ignored_target;
  options.count_correct = !context.training;
  const CrossEntropy loss =
      linear_cross_entropy(stack_.forward(batch.tokens, context), output_weight(), Var(), batch.labels, options);
  return {loss.sum, loss.targets, loss.correct};
}

Array LanguageModel::prefill(const Ids& tokens, DecodeState& state) const {
  check(tokens.rank() == 2 && tokens.dim(1) > 0, "language_model: prefill needs tokens (B, T) with T >= 1, not {}",
        tokens.shape());
  const TapePause pause;
  const Var states = stack_.prefill(tokens, state);
  const int64_t length = tokens.dim(1);
  const Var last = reshape(slice(states, 1, length - 1, length), {tokens.dim(0), states.dim(2)});
  return linear(last, output_weight()).value();
}

Array LanguageModel::step(const Ids& tokens, DecodeState& state) const {
  const TapePause pause;
  const Var states = stack_.step(tokens, state);
  return state.decode->linear(states.value(), output_weight());
}

}  // namespace capstan::CAPSTAN_PRECISION
