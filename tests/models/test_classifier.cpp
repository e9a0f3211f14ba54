// What a classifier adds to its stack: n-grams beside it, class weights, label smoothing.
#include <cmath>

#include "core/base/error.hpp"
#include "tests/models/samples.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace testing {
namespace {

Batch four_texts() {
  Batch batch = next_token_batch(Segments::from_lengths({8, 5, 1, 3}, 8), 3);
  batch.labels = Ids({4}, std::vector<int32_t>{2, 0, 1, ignored_target});
  return batch;
}

TEST_CASE("n-grams of the text's own tokens are added to the logits, whatever the pooling and the mixer") {
  for (const MixerCase& c : mixer_cases()) {
    for (const Pooling pooling : {Pooling::mean, Pooling::cls, Pooling::attention}) {
      INFO(c.name << ", " << enum_name(pooling));
      auto config = small<TextClassifierConfig>(c.config);
      config.pooling = pooling;
      const auto plain = classifier(config);
      config.ngrams.orders = {1, 2};
      config.ngrams.buckets = 40;
      config.ngrams.width = 3;
      const auto wide = classifier(config);
      redraw(*plain.store);
      redraw(*wide.store);
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

TEST_CASE("class weights and label smoothing change the loss of training and no loss of evaluation") {
  const Batch batch = four_texts();
  auto config = small<TextClassifierConfig>(AftSimpleConfig{});
  const auto plain = classifier(config);
  config.class_weights = ListedWeights{{4, 0, 0.5}};
  const auto weighted = classifier(config);
  config.class_weights = EqualClasses{};
  config.label_smoothing = 0.3;
  const auto smoothed = classifier(config);
  for (const auto* built : {&plain, &weighted, &smoothed}) redraw(*built->store);
  const auto loss = [&](const Built<TextClassifier>& built, const Batch& of, bool training) {
    const TaskLoss result = built.model->loss(of, context_of(of, training));
    CHECK(result.targets == (of.labels.size() == 4 ? 3 : 1));  // counted, not weighted
    return static_cast<double>(result.sum.value().item());
  };
  double sum = 0;
  const double weights[] = {4, 0, 0.5};
  for (int64_t row = 0; row < 3; ++row) {
    const Batch one{batch.tokens.rows(row, row + 1), batch.segment_ids.rows(row, row + 1),
                    batch.labels.rows(row, row + 1), batch.examples.rows(row, row + 1)};
    sum += weights[batch.labels[row]] * loss(plain, one, true);
  }
  CHECK(loss(weighted, batch, true) == doctest::Approx(sum).epsilon(sizeof(real) == 4 ? 1e-5 : 1e-12));
  CHECK(loss(weighted, batch, false) == loss(plain, batch, false));
  CHECK(loss(smoothed, batch, false) == loss(plain, batch, false));
  CHECK(std::abs(loss(smoothed, batch, true) - loss(plain, batch, true)) > 1e-3);
}

TEST_CASE("balanced class weights: N / (C n), with the mean 1 over the training examples") {
  const Batch batch = four_texts();
  auto config = small<TextClassifierConfig>(AftSimpleConfig{});
  config.class_weights = BalancedClasses{};
  auto balanced = classifier(config);
  redraw(*balanced.store);
  CHECK_THROWS_AS(balanced.model->loss(batch, context_of(batch, true)), std::invalid_argument);
  CHECK_NOTHROW(balanced.model->loss(batch, context_of(batch)));  // evaluation has no weights
  CHECK_THROWS_AS(balanced.model->balance({1, 2}), std::invalid_argument);

  const auto same_as = [&](const std::vector<int64_t>& counts, const std::vector<double>& weights) {
    balanced.model->balance(counts);
    config.class_weights = ListedWeights{weights};
    const auto listed = classifier(config);
    redraw(*listed.store);
    CHECK(static_cast<double>(balanced.model->loss(batch, context_of(batch, true)).sum.value().item()) ==
          doctest::Approx(static_cast<double>(listed.model->loss(batch, context_of(batch, true)).sum.value().item())));
  };
  same_as({60, 30, 10}, {100.0 / 180, 100.0 / 90, 100.0 / 30});
  same_as({75, 25, 0}, {100.0 / 150, 100.0 / 50, 0});  // the class that does not occur counts for nothing
}

TEST_CASE("a list of class weights must fit the classes") {
  auto config = small<TextClassifierConfig>(AftSimpleConfig{});
  config.class_weights = ListedWeights{{1, 2}};
  CHECK_THROWS_WITH_AS(classifier(config), "model.class_weights.weights: 2 weights for 3 classes", ConfigError);
  ProblemText problems("model.class_weights");
  validate(ListedWeights{{1, -2}}, problems);
  CHECK(problems.text() == "model.class_weights.weights.1: a weight must not be negative");
}

}  // namespace
}  // namespace testing
}  // namespace capstan::CAPSTAN_PRECISION
