// The next-token model: which states get logits. loss() forms logits in chunks and, where few tokens have a label, for
// labelled tokens only; prefill() for the last token, or for each. tests/models/test_decode.cpp.
#include "models/language_model.hpp"

#include <algorithm>

#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "core/fused/linear.hpp"
#include "core/fused/loss.hpp"
#include "core/ops/ops.hpp"
#include "models/summary.hpp"

namespace capstan {

void validate(const LanguageModelConfig& config, Problems& problems) {
  validate(static_cast<const ModelConfig&>(config), problems);
  validate_output(config, config, problems);
  if (config.prefix == PrefixRule::causal) return;
  for (size_t i = 0; i < config.layers.size(); ++i)
    if (const std::string obstacle = prefix_obstacle(config.layers[i].mixer); !obstacle.empty())
      problems.add("prefix", fmt::format("layers.{}: {}, so it can only be causal", i, obstacle));
}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

LanguageModel::LanguageModel(const Scope& scope, const LanguageModelConfig& config, int64_t vocabulary)
    : stack_(scope, config, {vocabulary, /*causal=*/true, 0, config.prefix == PrefixRule::bidirectional}),
      output_(scope, stack_, config, vocabulary),
      prefix_(config.prefix == PrefixRule::bidirectional) {
  ProblemText problems("model");
  validate(config, problems);
  if (!problems.text().empty()) throw ConfigError(problems.text());
}

Segments prefixes_of(const Segments& segments, const Ids& labels) {
  Ids ids = Ids::zeros(segments.ids().shape());
  for (const auto& span : segments.spans()) {
    const int32_t* const first = labels.data() + span.row * segments.length();
    int64_t end = span.begin;
    while (end < span.end && first[end] == ignored_target) ++end;
    if (end == span.end) continue;  // no label
    const int64_t row = span.row * segments.length();
    std::fill(ids.mutable_data() + row + span.begin, ids.mutable_data() + row + end + 1,
              segments.ids()[row + span.begin]);
  }
  return Segments(ids);
}

namespace {

/// Leaves out tokens without a label: states (B, T, D) becomes (N, D), labels (B, T) becomes (N), N = count > 0.
void keep_labelled(Var& states, Ids& labels, int64_t count) {
  Ids kept(Shape{count}), places(Shape{count});
  for (int64_t i = 0, next = 0; i < labels.size(); ++i) {
    if (labels[i] == ignored_target) continue;
    kept.mutable_data()[next] = labels[i];
    places.mutable_data()[next++] = static_cast<int32_t>(i);
  }
  states = gather(reshape(states, {labels.size(), states.dim(2)}), places);
  labels = kept;
}

}  // namespace

Var LanguageModel::logits(const Ids& tokens, const Context& context) const {
  return state_logits(stack_.forward(tokens, context));
}

Var LanguageModel::state_logits(const Var& states) const { return linear(states, output_.weight(), output_.bias()); }

TaskLoss LanguageModel::loss(const Batch& batch, const Context& context) const {
  check(batch.labels.shape() == batch.tokens.shape(), "language_model: labels {} do not match {}", batch.labels.shape(),
        batch.tokens.shape());
  CrossEntropyOptions options;
  options.ignored = ignored_target;
  options.count_correct = !context.training;
  Context reading = context;
  if (prefix_) reading.prefixes = prefixes_of(context.segments, batch.labels);
  Var states = stack_.forward(batch.tokens, reading);
  Ids labels = batch.labels;
  // In pairs few tokens have a label. Below half, gathering their states saves more than it
  // costs.
  const auto count = labels.size() - std::count(labels.data(), labels.data() + labels.size(), int32_t{ignored_target});
  if (count > 0 && 2 * count < labels.size()) keep_labelled(states, labels, count);
  const CrossEntropy loss = linear_cross_entropy(states, output_.weight(), output_.bias(), labels, options);
  return {loss.sum, loss.targets, loss.correct};
}

Array LanguageModel::prefill(const Ids& tokens, DecodeState& state, Array* every) const {
  check(tokens.rank() == 2 && tokens.dim(1) > 0, "language_model: prefill needs tokens (B, T) with T >= 1, not {}",
        tokens.shape());
  const TapePause pause;
  const Var states = stack_.prefill(tokens, state);
  if (every) *every = linear(states, output_.weight(), output_.bias()).value();
  const int64_t length = tokens.dim(1);
  const Var last = reshape(slice(states, 1, length - 1, length), {tokens.dim(0), states.dim(2)});
  return linear(last, output_.weight(), output_.bias()).value();
}

Array LanguageModel::step(const Ids& tokens, DecodeState& state) const {
  const TapePause pause;
  const Var states = stack_.step(tokens, state);
  return state.decode->linear(states.value(), output_.weight(), output_.bias());
}

ModelSummary LanguageModel::summary(const ParamStore& store, int64_t length, DecodeStates states) const {
  ModelSummary summary = summarize_stack(stack_, store, length, states);
  LayerSummary& output = summary.part("output");
  const double width = static_cast<double>(stack_.config().width);
  if (tied_output()) output.flops = output.decode_flops = 2 * width * static_cast<double>(vocabulary());
  output.activation_bytes = width * sizeof(real);  // the gradient of the states; logits exist in chunks only
  return summary;
}

}  // namespace capstan::CAPSTAN_PRECISION
