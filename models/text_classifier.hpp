// Text classifier: one label per text, or any number of labels. tests/models/test_classifier.cpp checks the head,
// losses and class weights, test_wiring.cpp attention pooling.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/losses/class_weights.hpp"
#include "models/losses/loss_config.hpp"
#include "models/model.hpp"
#include "nn/layers/ngram_features.hpp"

namespace capstan {

enum class Pooling { mean, cls, last, attention };

inline std::vector<EnumName<Pooling>> enum_names(Pooling) {
  return {{Pooling::mean, "mean"}, {Pooling::cls, "cls"}, {Pooling::last, "last"}, {Pooling::attention, "attention"}};
}

struct TextClassifierConfig : ModelConfig {
  static constexpr const char* type_name = "text-classifier";
  bool causal = false;
  Pooling pooling = Pooling::mean;
  NgramConfig ngrams;
  ClassWeights class_weights;
  LossConfig loss;
};

template <class Fields>
void describe(Fields& f, TextClassifierConfig& c) {
  describe_model(f, c);
  f("causal", c.causal, any(),
    "tokens see only those before them, as in a language model whose weights are taken with train.init_from");
  f("pooling", c.pooling, any(),
    "how the tokens of a text become one vector: mean, cls (a learned first token), last (the last token) or attention "
    "(learned weights)");
  f("ngrams", c.ngrams, any(), "hashed n-grams of the text's tokens, whose sum is added to the logits");
  f("class_weights", c.class_weights, any(),
    "factor of the loss of a text: equal (1), balanced (inversely proportional to the size of its class) or listed, "
    "{type: listed, weights: [1, 20]}, for which train.costs may be what is meant; probabilities stay those of the "
    "data, and decisions follow the weights");
  f("loss", c.loss, any(), "what training minimises");
}

void validate(const TextClassifierConfig& config, Problems& problems);

inline ModelFacts facts(const TextClassifierConfig& config) {
  ModelFacts facts = stack_facts(config);
  facts.predicts = Predicts::classes;
  facts.is_causal = config.causal;
  facts.class_weights = &config.class_weights;
  facts.begins_with_own = config.pooling == Pooling::cls;
  if (facts.begins_with_own) facts.own_token = "first token";
  facts.text_ngrams = &config.ngrams;
  return facts;
}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

/// Bidirectional (or causal) stack, pooled to p = sum_t a_t x_t over the valid tokens of the row's one document, then
///   logits = H p + h.
/// Pooling: mean a_t = 1/n; cls: an extra token precedes the text, a_t = 1 there and 0 elsewhere (its embedding is the
/// last row of embed.weight, (V + 1, D)); last: a_t = 1 at the last token; attention:
///   a = softmax(w . tanh(W x_t + b)).
/// A text without a valid token has p = 0, or the state of the cls token alone. With n-grams
/// configured, their logits are added. Parameters of the stack, head.weight (C, D), head.bias, for attention
/// pooling.hidden.weight (D, D), pooling.hidden.bias, pooling.score.weight (1, D), and those of ngrams
/// (nn/layers/ngram_embedding.hpp).
class TextClassifier final : public Model {
 public:
  /// Make it, then finalize() the store of `scope`. multi_label: a text has any number of the classes.
  TextClassifier(const Scope& scope, const TextClassifierConfig& config, int64_t vocabulary, int64_t classes,
                 bool multi_label = false);

  /// tokens: (B, T) -> (B, C). Throws std::invalid_argument when a row holds more than one document.
  Var logits(const Ids& tokens, const Context& context) const override;
  /// (B, C) -> (B, C): the softmax, multi-label the sigmoid.
  Array probabilities(const Var& logits) const override;
  /// What the head reads: the states combined into one vector per text, (B, D).
  Var pooled(const Ids& tokens, const Context& context) const;
  std::vector<float> text_vector(const Ids& tokens, const Context& context) const override;
  /// batch.labels: (B), the class or ignored_target; multi-label (B, C), 1 for the labels of a text and 0 for others,
  /// with a text as one target whose loss is the sum of all labels' binary cross-entropies. In training it is the
  /// configured loss, weighted by class and by example; the number of targets is not weighted. Class weights also shift
  /// the logits of training by their logarithms, so that probabilities stay those of the examples as they are.
  TaskLoss loss(const Batch& batch, const Context& context) const override;

  /// The training examples of each class, and of all, for class weights (weights_of()). Call it before training: the
  /// constructor may get a number of classes that is not that of the data, to tell sizes. Throws ConfigError when
  /// weights are listed for another number of classes.
  void balance(const std::vector<int64_t>& class_counts, int64_t examples);
  void prepare(const ModelData& data) override;

  /// Weights per block; pooling cls adds a token in front of each text.
  std::vector<std::vector<MixingWeights>> mixing_weights(const Ids& tokens, const Context& context) const override;

  int64_t classes() const override { return classes_; }
  bool multi_label() const { return multi_label_; }
  int64_t label_columns() const override { return multi_label_ ? classes() : 0; }
  Pooling pooling() const { return pooling_; }
  const NgramConfig& ngrams() const { return ngram_config_; }
  const Stack* find_stack() const override { return &stack_; }
  ModelSummary summary(const ParamStore& store, int64_t length, DecodeStates states) const override;

 private:
  void weigh(const std::vector<double>& weights);
  struct Input {
    Ids tokens;
    Context context;
  };
  /// What the stack reads: the batch, with pooling cls one token longer.
  Input stack_input(const Ids& tokens, const Context& context) const;
  /// The weights a (see the class) by which pooling adds states up: (B, 1, T) for the states x (B, T, D).
  Var pooling_weights(const Var& x, const Segments& segments) const;

  Pooling pooling_;
  NgramConfig ngram_config_;
  int64_t vocabulary_, classes_;
  Stack stack_;
  std::unique_ptr<Linear> pooling_hidden_, pooling_score_;
  std::unique_ptr<Linear> head_;
  std::unique_ptr<NgramFeatures> ngrams_;
  bool multi_label_;
  ClassWeights weighting_;
  std::string head_bias_;                // name of the parameter head.bias, for prepare()
  Array class_weights_, weight_shifts_;  // (C), the weights and their logarithms; empty: 1
  LossConfig loss_;
};

inline std::unique_ptr<Model> make_model(const TextClassifierConfig& config, const Scope& scope,
                                         const ModelSizes& sizes) {
  return std::make_unique<TextClassifier>(scope, config, sizes.vocabulary, sizes.classes, sizes.multi_label);
}

}  // namespace capstan::CAPSTAN_PRECISION
