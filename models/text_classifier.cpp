// Pools the stack's states by a product with weights (B, 1, T), which each kind of pooling makes; padding has weight 0.
// Class weights shift logits in training only, and prepare() makes the head's bias undo the shift at the start.
// tests/models/test_classifier.cpp.
#include "models/text_classifier.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/fused/loss.hpp"
#include "core/kernels/activation.hpp"
#include "core/ops/ops.hpp"
#include "models/summary.hpp"
#include "nn/layers/ngram_features.hpp"

namespace capstan {

void validate(const TextClassifierConfig& config, Problems& problems) {
  if (config.causal && config.pooling == Pooling::cls)
    problems.add("pooling",
                 "cls is the first token, which sees no other in a causal model; use mean, last or attention");
  if (config.layers.empty() && config.ngrams.any())
    problems.add(
        "ngrams",
        "without layers, they are all that the model reads: set model.type=linear-classifier, which is a bag of "
        "n-grams (model.words has their lengths), or give layers");
  if (config.ngrams.buckets == 0) problems.add("ngrams.buckets", "only those of a language model can be left open");
  validate(static_cast<const ModelConfig&>(config), problems);
}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {
namespace {

StackShape stack_shape(const TextClassifierConfig& config, int64_t vocabulary) {
  const int64_t extra = config.pooling == Pooling::cls ? 1 : 0;
  return {vocabulary + extra, config.causal, extra};
}

/// Throws unless each row is one text: the states of several would be pooled together.
void check_one_document(const Segments& segments) {
  int64_t previous = -1;
  for (const auto& span : segments.spans()) {
    check(span.row != previous, "text_classifier: row {} holds more than one document", span.row);
    previous = span.row;
  }
}

/// The tokens and segments of a batch with one more token in each row.
struct Prefixed {
  Ids tokens;
  Segments segments;
};

/// (B, T) -> (B, T + 1): with `token` in front of the first valid token of every row, or first in a row of padding.
Prefixed prefix(const Ids& tokens, const Segments& segments, int32_t token) {
  const int64_t batch = segments.batch(), length = segments.length();
  std::vector<int64_t> begins(static_cast<size_t>(batch), 0);
  for (const auto& span : segments.spans()) begins[static_cast<size_t>(span.row)] = span.begin;
  Ids longer_tokens(Shape{batch, length + 1}), longer_ids(Shape{batch, length + 1});
  int32_t *tokens_out = longer_tokens.mutable_data(), *ids_out = longer_ids.mutable_data();
  for (int64_t row = 0; row < batch; ++row) {
    const int64_t begin = begins[static_cast<size_t>(row)];
    const int32_t* const tokens_in = tokens.data() + row * length;
    const int32_t* const ids_in = segments.ids().data() + row * length;
    for (int64_t t = 0; t < length; ++t)
      check(tokens_in[t] >= 0 && tokens_in[t] < token,
            "text_classifier: token {} at ({}, {}) is outside the vocabulary of {}", tokens_in[t], row, t, token);
    const bool empty = begin == length || ids_in[begin] == 0;
    tokens_out = std::copy_n(tokens_in, begin, tokens_out);
    ids_out = std::copy_n(ids_in, begin, ids_out);
    *tokens_out++ = token;
    *ids_out++ = empty ? 1 : ids_in[begin];
    tokens_out = std::copy_n(tokens_in + begin, length - begin, tokens_out);
    ids_out = std::copy_n(ids_in + begin, length - begin, ids_out);
  }
  return {longer_tokens, Segments(longer_ids)};
}

/// 1 at the tokens of documents, 0 at padding, (B, T).
Array valid_mask(const Segments& segments) {
  Array mask = Array::zeros(segments.ids().shape());
  real* const out = mask.mutable_data();
  for (const auto& span : segments.spans())
    std::fill_n(out + span.row * segments.length() + span.begin, span.length(), real{1});
  return mask;
}

}  // namespace

TextClassifier::TextClassifier(const Scope& scope, const TextClassifierConfig& config, int64_t vocabulary,
                               int64_t classes, bool multi_label)
    : pooling_(config.pooling),
      ngram_config_(config.ngrams),
      vocabulary_(vocabulary),
      classes_(classes),
      stack_(scope, config, stack_shape(config, vocabulary)),
      multi_label_(multi_label),
      weighting_(config.class_weights),
      head_bias_((scope / "head").path() + ".bias"),
      loss_(config.loss) {
  check(classes > 0, "text_classifier: {} classes", classes);
  head_ =
      std::make_unique<Linear>(scope / "head", LinearConfig{config.width, classes, /*bias=*/true, 1, /*output=*/true});
  if (config.ngrams.any()) ngrams_ = std::make_unique<NgramFeatures>(scope / "ngrams", config.ngrams, classes);
  if (const auto* const listed = std::get_if<ListedWeights>(&config.class_weights)) weigh(listed->weights);
  if (pooling_ != Pooling::attention) return;
  const Scope place = scope / "pooling";
  pooling_hidden_ = std::make_unique<Linear>(place / "hidden", LinearConfig{config.width, config.width});
  // The score has no bias: a constant cancels in the softmax.
  pooling_score_ = std::make_unique<Linear>(place / "score", LinearConfig{config.width, 1, /*bias=*/false});
}

void TextClassifier::balance(const std::vector<int64_t>& class_counts, int64_t examples) {
  check(static_cast<int64_t>(class_counts.size()) == classes(), "text_classifier: {} counts for {} classes",
        class_counts.size(), classes());
  const std::vector<double> weights = weights_of(weighting_, class_counts, examples, multi_label_);
  if (!weights.empty()) weigh(weights);
}

void TextClassifier::weigh(const std::vector<double>& weights) {
  const Shape shape{static_cast<int64_t>(weights.size())};
  const std::vector<double> shifts = log_weights_of(weights);
  class_weights_ = Array(shape, std::vector<real>(weights.begin(), weights.end()));
  weight_shifts_ = Array(shape, std::vector<real>(shifts.begin(), shifts.end()));
}

/// The head's bias begins as minus the shifts that class weights add in training: a model that has learnt nothing then
/// finds the weighted classes equally likely.
void TextClassifier::prepare(const ModelData& data) {
  if (data.class_counts.empty()) return;
  balance(data.class_counts, data.examples);
  if (data.params == nullptr || weight_shifts_.empty() || !data.params->has_initial_values()) return;
  real* const bias = data.params->values() + data.params->find(head_bias_).offset;
  for (int64_t c = 0; c < classes(); ++c) bias[c] = -weight_shifts_[c];
}

Var TextClassifier::pooling_weights(const Var& x, const Segments& segments) const {
  const Shape shape{segments.batch(), 1, segments.length()};
  if (pooling_ == Pooling::attention) {
    const Var scores = (*pooling_score_)((*pooling_hidden_)(x, Activation::tanh));  // (B, T, 1)
    return softmax(reshape(scores, shape.to_vector()), valid_mask(segments).reshape(shape));
  }
  Array weights = Array::zeros(shape);
  real* const out = weights.mutable_data();
  for (const auto& span : segments.spans()) {
    real* const of_row = out + span.row * segments.length();
    if (pooling_ == Pooling::cls)
      of_row[span.begin] = 1;
    else if (pooling_ == Pooling::last)
      of_row[span.end - 1] = 1;
    else
      std::fill_n(of_row + span.begin, span.length(), 1 / static_cast<real>(span.length()));
  }
  return Var(weights);
}

TextClassifier::Input TextClassifier::stack_input(const Ids& tokens, const Context& context) const {
  check(tokens.shape() == context.segments.ids().shape(),
        "text_classifier: tokens {} and segment ids {} differ in shape", tokens.shape(),
        context.segments.ids().shape());
  check_one_document(context.segments);
  Input input{tokens, context};
  if (pooling_ == Pooling::cls) {
    Prefixed longer = prefix(tokens, context.segments, static_cast<int32_t>(vocabulary_));
    input.tokens = std::move(longer.tokens);
    input.context.segments = std::move(longer.segments);
  }
  return input;
}

std::vector<std::vector<MixingWeights>> TextClassifier::mixing_weights(const Ids& tokens,
                                                                       const Context& context) const {
  const Input input = stack_input(tokens, context);
  return stack_.mixing_weights(input.tokens, input.context);
}

Var TextClassifier::pooled(const Ids& tokens, const Context& context) const {
  const Input input = stack_input(tokens, context);
  const Var x = stack_.forward(input.tokens, input.context);
  return reshape(matmul(pooling_weights(x, input.context.segments), x), {x.dim(0), x.dim(2)});
}

std::vector<float> TextClassifier::text_vector(const Ids& tokens, const Context& context) const {
  const Array vector = pooled(tokens, context).value();
  return {vector.data(), vector.data() + vector.size()};
}

Var TextClassifier::logits(const Ids& tokens, const Context& context) const {
  const Var logits = (*head_)(pooled(tokens, context));
  return ngrams_ ? logits + (*ngrams_)(tokens, context) : logits;
}

Array TextClassifier::probabilities(const Var& logits) const {
  return multi_label_ ? sigmoid(logits).value() : softmax(logits).value();
}

TaskLoss TextClassifier::loss(const Batch& batch, const Context& context) const {
  check(!context.training || std::holds_alternative<EqualClasses>(weighting_) || !class_weights_.empty(),
        "text_classifier: class_weights need balance() to be called before training");
  const int64_t texts = batch.tokens.dim(0);
  check(batch.labels.shape() == (multi_label_ ? Shape{texts, classes()} : Shape{texts}),
        "text_classifier: labels {} do not match {} texts, {} classes", batch.labels.shape(), texts, classes());
  const Var logits = this->logits(batch.tokens, context);
  if (context.training) {
    const Var shifted = weight_shifts_.empty() ? logits : logits + Var(weight_shifts_);
    const auto targets =
        multi_label_ ? texts : texts - std::count(batch.labels.data(), batch.labels.data() + texts, ignored_target);
    const auto sum_of = [&](const Var& row_logits, const Ids& labels) {
      const LossInput input{row_logits, labels, class_weights_, multi_label_};
      return std::visit([&](const auto& loss) { return loss_sum(loss, input); }, loss_);
    };
    if (batch.weights.empty()) return {sum_of(shifted, batch.labels), targets};
    Var sum(Array::scalar(0));
    for (int64_t row = 0; row < texts; ++row)
      sum = sum + sum_of(slice(shifted, 0, row, row + 1), batch.labels.rows(row, row + 1)) * batch.weights[row];
    return {sum, targets};
  }
  if (multi_label_) return {sigmoid_cross_entropy(logits, batch.labels), texts, 0, probabilities(logits)};
  CrossEntropyOptions options;
  options.ignored = ignored_target;
  options.count_correct = true;
  const CrossEntropy loss = softmax_cross_entropy(logits, batch.labels, options);
  return {loss.sum, loss.targets, loss.correct, probabilities(logits)};
}

/// Costs of the stack, and of head and n-grams once per text. No decode costs: even causal classifiers write no text.
ModelSummary TextClassifier::summary(const ParamStore& store, int64_t length, DecodeStates) const {
  ModelSummary summary = summarize_stack(stack_, store, length, DecodeStates::left_out);
  summary.decodes = false;
  summary.part("head").flops /= static_cast<double>(length);  // one product per text
  const double width = static_cast<double>(stack_.config().width);
  if (ngrams().any()) {
    LayerSummary& table = summary.part("ngrams");
    table.flops /= static_cast<double>(length);  // one product per text; a sum per n-gram
    table.flops += static_cast<double>(ngrams().orders.size()) * static_cast<double>(ngrams().width);
    table.decode_flops = table.flops;
  }
  if (pooling() == Pooling::attention) summary.part("pooling").activation_bytes = 3 * width * sizeof(real);
  return summary;
}

}  // namespace capstan::CAPSTAN_PRECISION
