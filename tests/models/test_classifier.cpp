// What a classifier adds to its stack: n-grams beside it, class weights, label smoothing.
#include <cmath>

#include "core/base/error.hpp"
#include "nn/layers/ngram_features.hpp"
#include "tests/models/samples.hpp"
#include "tests/support/ragged.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

Batch four_texts() {
  Batch batch = next_token_batch(segments_of_lengths({8, 5, 1, 3}, 8), 3);
  batch.labels = Ids({4}, std::vector<int32_t>{2, 0, 1, ignored_target});
  return batch;
}

TEST_CASE("n-grams of the text's own tokens are added to the logits, whatever the pooling and the mixer") {
  for (const MixerCase& c : mixer_cases()) {
    for (const Pooling pooling : {Pooling::mean, Pooling::cls, Pooling::attention}) {
      INFO(c.name << ", " << enum_name(pooling));
      auto config = small<TextClassifierConfig>(c.config);
      config.pooling = pooling;
      const auto plain = redrawn(classifier(config));
      set_ngrams(config.ngrams, {1, 2}, 40, 3);
      const auto wide = redrawn(classifier(config));
      ParamStore own;
      const NgramFeatures features(Scope(own, 1) / "ngrams", config.ngrams, 3);
      redraw(own);
      const Batch batch = four_texts();
      const Context context = context_of(batch);
      const Array sum = wide.model->logits(batch.tokens, context).value();
      Array parts = plain.model->logits(batch.tokens, context).value().clone();
      const Array added = features(batch.tokens, context).value();
      for (int64_t i = 0; i < parts.size(); ++i) parts.mutable_data()[i] += added[i];
      CHECK(relative_error(sum, parts) < fused_tolerance);
    }
  }
}

/// Probabilities (B, C) of the logits plus the logarithms of class weights, where these are not 0.
std::vector<double> weighted_probabilities(const Array& logits, const std::vector<double>& weights) {
  std::vector<double> all;
  for (int64_t row = 0; row < logits.dim(0); ++row) {
    double sum = 0;
    for (size_t c = 0; c < 3; ++c) {
      const double shift = weights[c] > 0 ? weights[c] : 1;
      all.push_back(shift * std::exp(static_cast<double>(logits[row * 3 + static_cast<int64_t>(c)])));
      sum += all.back();
    }
    for (size_t c = all.size() - 3; c < all.size(); ++c) all[c] /= sum;
  }
  return all;
}

TEST_CASE("class weights and label smoothing change the loss of training and no loss of evaluation") {
  const Batch batch = four_texts();
  auto config = small<TextClassifierConfig>(any_mixer());
  const auto plain = classifier(config);
  config.class_weights = ListedWeights{{4, 0, 0.5}};
  const auto weighted = classifier(config);
  config.class_weights = EqualClasses{};
  config.loss = CrossEntropyConfig{0.3};
  const auto smoothed = classifier(config);
  for (const auto* built : {&plain, &weighted, &smoothed}) redraw(*built->store);
  const auto loss = [&](const Built<TextClassifier>& built, const Batch& of, bool training) {
    const TaskLoss result = built.model->loss(of, context_of(of, training));
    CHECK(result.targets == (of.labels.size() == 4 ? 3 : 1));  // counted, not weighted
    return static_cast<double>(result.sum.value().item());
  };
  double sum = 0;
  const std::vector<double> weights{4, 0, 0.5};
  const Array logits = plain.model->logits(batch.tokens, context_of(batch)).value();
  const std::vector<double> p = weighted_probabilities(logits, weights);
  for (int64_t row = 0; row < 3; ++row)
    sum -=
        weights[static_cast<size_t>(batch.labels[row])] * std::log(p[static_cast<size_t>(3 * row + batch.labels[row])]);
  CHECK(loss(weighted, batch, true) == doctest::Approx(sum).epsilon(sizeof(real) == 4 ? 1e-5 : 1e-12));
  CHECK(loss(weighted, batch, false) == loss(plain, batch, false));
  CHECK(loss(smoothed, batch, false) == loss(plain, batch, false));
  for (const auto* built : {&plain, &weighted, &smoothed}) {  // weights of examples
    Batch heavier = batch;
    heavier.weights = Array(Shape{4}, std::vector<real>{2, 0.5, 1, 1});
    double expected = 0;
    for (int64_t row = 0; row < 3; ++row) {
      Batch one{batch.tokens.rows(row, row + 1), batch.segment_ids.rows(row, row + 1), batch.labels.rows(row, row + 1),
                batch.examples.rows(row, row + 1)};
      expected += static_cast<double>(heavier.weights[row]) * loss(*built, one, true);
    }
    CHECK(loss(*built, heavier, true) == doctest::Approx(expected).epsilon(1e-5));
    CHECK(loss(*built, heavier, false) == loss(*built, batch, false));
  }
  CHECK(std::abs(loss(smoothed, batch, true) - loss(plain, batch, true)) > 1e-3);
}

TEST_CASE("balanced class weights: N / (C n), with the mean 1 over the training examples") {
  const Batch batch = four_texts();
  auto config = small<TextClassifierConfig>(any_mixer());
  config.class_weights = BalancedClasses{};
  const auto balanced = redrawn(classifier(config));
  CHECK_THROWS_AS(balanced.model->loss(batch, context_of(batch, true)), std::invalid_argument);
  CHECK_NOTHROW(balanced.model->loss(batch, context_of(batch)));  // evaluation has no weights
  CHECK_THROWS_AS(balanced.model->balance({1, 2}, 3), std::invalid_argument);

  const auto same_as = [&](const std::vector<int64_t>& counts, const std::vector<double>& weights) {
    balanced.model->balance(counts, 100);
    config.class_weights = ListedWeights{weights};
    const auto listed = redrawn(classifier(config));
    CHECK(static_cast<double>(balanced.model->loss(batch, context_of(batch, true)).sum.value().item()) ==
          doctest::Approx(static_cast<double>(listed.model->loss(batch, context_of(batch, true)).sum.value().item())));
  };
  same_as({60, 30, 10}, {100.0 / 180, 100.0 / 90, 100.0 / 30});
  same_as({75, 25, 0}, {100.0 / 150, 100.0 / 50, 0});  // the class that does not occur counts for nothing
}

TEST_CASE("losses and their gradients are finite for extreme logits") {
  const Ids labels({4}, std::vector<int32_t>{0, 1, 0, ignored_target}), sets(Shape{4, 2}, {0, 1, 1, 0, 1, 1, 0, 0});
  for (const LossConfig& config : loss_cases()) {
    for (const bool multi_label : {false, true}) {
      const Var logits = Var::leaf(Array(Shape{4, 2}, {1000, -1000, 1000, -1000, 0, 0, -1000, 1000}));
      TapeScope tape;
      const LossInput input{logits, multi_label ? sets : labels, Array(), multi_label};
      const Var loss = std::visit([&](const auto& one) { return loss_sum(one, input); }, config);
      tape.backward(loss);
      CHECK(std::isfinite(loss.value().item()));
      const Array gradient = logits.grad();
      for (int64_t i = 0; i < gradient.size(); ++i) CHECK(std::isfinite(gradient[i]));
      CHECK(gradient[4] != 0);  // equal logits, as those of a new model, still learn
    }
  }
}

/// None, one, two and all of three labels.
Batch four_labelled_texts() {
  Batch batch = four_texts();
  batch.labels = Ids(Shape{4, 3}, {0, 0, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1});
  return batch;
}

TEST_CASE("multi-label: the loss of a text is the sum of the binary cross-entropies of its labels") {
  const Batch batch = four_labelled_texts();
  auto config = small<TextClassifierConfig>(any_mixer());
  config.class_weights = ListedWeights{{4, 1, 0.5}};
  config.loss = CrossEntropyConfig{0.2};
  const auto built = redrawn(classifier(config, 1, true));
  const Array logits = built.model->logits(batch.tokens, context_of(batch)).value();
  const double weights[] = {4, 1, 0.5};
  const double tolerance = sizeof(real) == 4 ? 1e-5 : 1e-12;
  for (const bool training : {false, true}) {
    double expected = 0;
    for (int64_t i = 0; i < logits.size(); ++i) {
      const double w = training ? weights[i % 3] : 1, y = batch.labels[i], t = training ? 0.8 * y + 0.1 : y;
      const double p = 1 / (1 + std::exp(-static_cast<double>(logits[i])) / w);
      expected -= w * t * std::log(p) + (1 - t) * std::log(1 - p);
    }
    const TaskLoss loss = built.model->loss(batch, context_of(batch, training));
    CHECK(static_cast<double>(loss.sum.value().item()) == doctest::Approx(expected).epsilon(tolerance));
    CHECK(loss.targets == 4);
    CHECK(loss.probabilities.empty() == training);
    for (int64_t i = 0; i < loss.probabilities.size(); ++i)
      CHECK(static_cast<double>(loss.probabilities[i]) ==
            doctest::Approx(1 / (1 + std::exp(-static_cast<double>(logits[i])))).epsilon(tolerance));
  }
  CHECK(built.model->label_columns() == 3);
  CHECK(classifier(config).model->label_columns() == 0);
  CHECK_THROWS_AS(built.model->loss(four_texts(), context_of(batch)), std::invalid_argument);
  CHECK_THROWS_AS(classifier(config).model->loss(batch, context_of(batch)), std::invalid_argument);
}

TEST_CASE("multi-label: balanced class weights are the texts without a label for each with it") {
  const Batch batch = four_labelled_texts();
  auto config = small<TextClassifierConfig>(any_mixer());
  config.class_weights = BalancedClasses{};
  const auto balanced = redrawn(classifier(config, 1, true));
  balanced.model->balance({60, 100, 0}, 100);  // never without the second label, never with the third
  config.class_weights = ListedWeights{{40.0 / 60, 1.0 / 100, 1}};
  const auto listed = redrawn(classifier(config, 1, true));
  CHECK(static_cast<double>(balanced.model->loss(batch, context_of(batch, true)).sum.value().item()) ==
        doctest::Approx(static_cast<double>(listed.model->loss(batch, context_of(batch, true)).sum.value().item())));
}

TEST_CASE("a causal classifier reads a text as a language model does, and the last token has seen all of it") {
  for (const MixerCase& c : mixer_cases()) {
    INFO(c.name);
    auto config = small<TextClassifierConfig>(c.config);
    config.causal = true;
    config.pooling = Pooling::last;
    const auto built = redrawn(classifier(config));
    const auto lm = language_model(small<LanguageModelConfig>(c.config));
    redraw(*lm.store);  // by name: the same stack
    const Ids tokens = random_tokens({2, 9}, 4);
    Ids ids = Ids::zeros({2, 9});
    std::fill_n(ids.mutable_data(), 9, 1);
    std::fill_n(ids.mutable_data() + 9, 6, 1);
    const Context context{Segments(ids)};
    const Array states = lm.model->stack().forward(tokens, context).value();
    const Array pooled = built.model->pooled(tokens, context).value();
    const int64_t width = pooled.dim(1);
    for (int64_t row = 0; row < 2; ++row) {
      const int64_t last = row == 0 ? 8 : 5;
      const Array expected = states.rows(row, row + 1).reshape({9, width}).rows(last, last + 1);
      CHECK(relative_error(pooled.rows(row, row + 1), expected, 1) <= (sizeof(real) == 4 ? 1e-5 : 1e-12));
    }
  }
  ProblemText problems("model");
  auto wrong = small<TextClassifierConfig>(any_mixer());
  wrong.causal = true;
  wrong.pooling = Pooling::cls;
  validate(wrong, problems);
  CHECK(problems.text().find("model.pooling: cls is the first token, which sees no other in a causal model") !=
        std::string::npos);
}

TEST_CASE("a bag of n-grams is a linear-classifier, not a text-classifier without layers") {
  ProblemText problems("model");
  auto bag = small<TextClassifierConfig>(any_mixer());
  bag.layers.clear();
  validate(bag, problems);
  CHECK(problems.text() == "");
  bag.ngrams.orders = {1, 2};
  validate(bag, problems);
  CHECK(problems.text().find("model.ngrams: without layers, they are all that the model reads: set "
                             "model.type=linear-classifier") != std::string::npos);
}

TEST_CASE("class weights begin with a bias by which a model that has learnt nothing finds them equally likely") {
  auto config = small<TextClassifierConfig>(any_mixer());
  config.class_weights = BalancedClasses{};
  auto made = classifier(config);
  made.store->finalize();
  const std::vector<int64_t> counts{60, 30, 10};
  made.model->prepare({counts, 100, &*made.store});
  const Param& bias = made.store->find("head.bias");
  for (int64_t c = 0; c < 3; ++c)  // as the classes are, but for a constant
    CHECK(made.store->values()[bias.offset + c] - made.store->values()[bias.offset] ==
          doctest::Approx(std::log(static_cast<double>(counts[static_cast<size_t>(c)]) / 60)));
}

TEST_CASE("a list of class weights must fit the classes") {
  auto config = small<TextClassifierConfig>(any_mixer());
  config.class_weights = ListedWeights{{1, 2}};
  const auto made = classifier(config);  // sizes are asked for before the number of classes is known
  CHECK_THROWS_WITH_AS(made.model->balance({4, 3, 3}, 10), "model.class_weights.weights: 2 weights for 3 classes",
                       ConfigError);
  ProblemText problems("model.class_weights");
  validate(ListedWeights{{1, -2}}, problems);
  CHECK(problems.text() == "model.class_weights.weights.1: a weight must not be negative");
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
