// What every model must do in training beside learning (test_matrix.cpp):
// ignore padding, take no fresh memory, recompute exactly.
#include "core/base/error.hpp"
#include "core/fused/loss.hpp"
#include "core/machine/pool.hpp"
#include "tests/models/systems.hpp"
#include "tests/support/ragged.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

struct TaskCase {
  std::string name;
  std::shared_ptr<ParamStore> store;
  std::shared_ptr<Task> task;
  Batch batch;
};

std::vector<TaskCase> task_cases() {
  std::vector<TaskCase> cases;
  for (const MixerCase& c : mixer_cases()) {
    auto lm = language_model(small<LanguageModelConfig>(c.config));
    cases.push_back(
        {"language model, " + c.name, std::move(lm.store), std::move(lm.model), next_token_batch(ragged(16), 6)});
    for (const Pooling pooling : {Pooling::mean, Pooling::cls, Pooling::last, Pooling::attention}) {
      auto config = small<TextClassifierConfig>(c.config);
      config.pooling = pooling;
      auto labels = classifier(config);
      Batch batch = next_token_batch(segments_of_lengths({16, 7, 11}, 16), 7);
      batch.labels = Ids({3}, std::vector<int32_t>{2, 0, 1});
      cases.push_back({"classifier, " + c.name + ", " + enum_name(pooling), std::move(labels.store),
                       std::move(labels.model), batch});
    }
  }
  return cases;
}

TEST_CASE("after the first step at a fixed shape a training step takes no memory from the system") {
  for (const TaskCase& c : task_cases()) {
    INFO(c.name);
    c.store->finalize();
    descend(*c.task, *c.store, c.batch, 0.01);
    const uint64_t misses = pool::stats().misses;
    for (int step = 0; step < 3; ++step) descend(*c.task, *c.store, c.batch, 0.01);
    CHECK(pool::stats().misses == misses);
  }
}

TEST_CASE("where few tokens have a label, loss and gradients are those of all logits") {
  for (const bool tied : {true, false}) {
    auto config = small<LanguageModelConfig>(any_mixer());
    config.tied_output = tied;
    const auto built = finalized(language_model(config));
    Batch batch = next_token_batch(ragged(16), 6);
    // Of 48 places 2, then none in a row of its own.
    for (int64_t i = 0; i < batch.labels.size(); ++i)
      if (i != 3 && i != 36) batch.labels.mutable_data()[i] = ignored_target;
    REQUIRE(batch.labels[3] != ignored_target);
    REQUIRE(batch.labels[36] != ignored_target);
    const auto run = [&](const auto& loss_of) {
      built.store->clear_grads();
      TapeScope scope;
      scope.backward(loss_of());
      return gradients_of(*built.store);
    };
    const Context context = context_of(batch, true);
    real few = 0, all = 0;
    const std::vector<real> gradients = run([&] {
      const TaskLoss loss = built.model->loss(batch, context);
      CHECK(loss.targets == 2);
      few = loss.sum.value().item();
      return loss.sum;
    });
    const std::vector<real> expected = run([&] {
      CrossEntropyOptions options;
      options.ignored = ignored_target;
      const Var sum = softmax_cross_entropy(built.model->logits(batch.tokens, context), batch.labels, options).sum;
      all = sum.value().item();
      return sum;
    });
    CHECK(few == doctest::Approx(all).epsilon(1e-6));
    double worst = 0;
    for (size_t i = 0; i < expected.size(); ++i)
      worst = std::max(worst, std::abs(static_cast<double>(gradients[i]) - static_cast<double>(expected[i])));
    CHECK(worst < 1e-5);
    Batch none = batch;
    none.labels = Ids(batch.labels.shape(), ignored_target);
    CHECK(built.model->loss(none, context).targets == 0);
  }
}

TEST_CASE("a loss knows how many targets it has and, in evaluation, how many are right") {
  const auto built = finalized(language_model(small<LanguageModelConfig>(any_mixer())));
  const Batch batch = next_token_batch(ragged(16), 6);
  for (int step = 0; step < 400; ++step) descend(*built.model, *built.store, batch, 0.3);
  const TaskLoss training = built.model->loss(batch, context_of(batch, true)),
                 evaluation = built.model->loss(batch, context_of(batch));
  CHECK(training.targets == 15 + 12 + 7 + 6);
  CHECK(training.correct == 0);
  CHECK(evaluation.correct > evaluation.targets / 2);
  CHECK(evaluation.correct <= evaluation.targets);
}

/// Row `row` of a batch cut to `length` tokens, padded to `padded`, token 3 standing in the padding.
Batch alone(const Batch& batch, int64_t row, int64_t length, int64_t padded) {
  const int64_t stride = batch.tokens.dim(1);
  Batch out{Ids({1, padded}, 3), Ids({1, padded}, 0), Ids({1, padded}, ignored_target),
            Ids({1}, static_cast<int32_t>(row))};
  for (int64_t t = 0; t < length; ++t) {
    out.tokens.mutable_data()[t] = batch.tokens[row * stride + t];
    out.segment_ids.mutable_data()[t] = batch.segment_ids[row * stride + t];
    if (batch.labels.rank() == 2) out.labels.mutable_data()[t] = batch.labels[row * stride + t];
  }
  return out;
}

TEST_CASE("padding and batch mates change no loss and no logit") {
  const double tolerance = sizeof(real) == 4 ? 1e-5 : 1e-12;
  const std::vector<int64_t> lengths{16, 7, 11, 1};
  for (const MixerCase& c : mixer_cases()) {
    const Batch batch = next_token_batch(segments_of_lengths(lengths, 16), 8);
    const auto lm = redrawn(language_model(small<LanguageModelConfig>(c.config)));
    const double together = lm.model->loss(batch, context_of(batch)).sum.value().item();
    double apart = 0;
    for (int64_t row = 0; row < 4; ++row) {
      const int64_t length = lengths[static_cast<size_t>(row)];
      const Batch one = alone(batch, row, length, length + 2 * row);
      apart += static_cast<double>(lm.model->loss(one, context_of(one)).sum.value().item());
    }
    CHECK_MESSAGE(std::abs(together - apart) <= tolerance * std::max(1.0, std::abs(together)), c.name);

    for (const Pooling pooling : {Pooling::mean, Pooling::cls, Pooling::last, Pooling::attention}) {
      auto config = small<TextClassifierConfig>(c.config);
      config.pooling = pooling;
      const auto built = redrawn(classifier(config));
      const Array all = built.model->logits(batch.tokens, context_of(batch)).value();
      for (int64_t row = 0; row < 4; ++row) {
        INFO(c.name << ", " << enum_name(pooling) << ", row " << row);
        const int64_t length = lengths[static_cast<size_t>(row)];
        const Batch one = alone(batch, row, length, length + 2 * row);
        CHECK(relative_error(built.model->logits(one.tokens, context_of(one)).value(), all.rows(row, row + 1), 1) <=
              tolerance);
      }
    }
  }
}

TEST_CASE("left padding is padding too, and an empty text has logits") {
  for (const Pooling pooling : {Pooling::mean, Pooling::cls, Pooling::last, Pooling::attention}) {
    INFO(enum_name(pooling));
    auto config = small<TextClassifierConfig>(any_mixer());
    config.pooling = pooling;
    const auto built = redrawn(classifier(config));
    const Ids tokens({3, 4}, std::vector<int32_t>{5, 6, 7, 0, 0, 5, 6, 7, 1, 2, 3, 4});
    const Ids ids({3, 4}, std::vector<int32_t>{1, 1, 1, 0, 0, 2, 2, 2, 0, 0, 0, 0});
    const Array logits = built.model->logits(tokens, Context{Segments(ids)}).value();
    CHECK(relative_error(logits.rows(0, 1), logits.rows(1, 2), 1) <= (sizeof(real) == 4 ? 1e-5 : 1e-12));
    const Array empty = logits.rows(2, 3), bias = built.store->find("head.bias").var.value().reshape({1, 3});
    for (const real entry : empty.to_vector()) CHECK(std::isfinite(entry));
    CHECK((relative_error(empty, bias) < 1e-6) == (pooling != Pooling::cls));

    Batch batch{tokens, ids, Ids({3}, std::vector<int32_t>{0, 1, 2}), Ids({3}, std::vector<int32_t>{0, 1, 2})};
    TapeScope scope;
    scope.backward(built.model->loss(batch, context_of(batch, true)).sum);
    for (const Param& param : built.store->params())
      for (const real entry : param.var.grad().to_vector()) CHECK(std::isfinite(entry));
    const Ids packed({1, 4}, std::vector<int32_t>{1, 1, 2, 2});
    CHECK_THROWS_AS(built.model->logits(Ids({1, 4}, 1), Context{Segments(packed)}), std::invalid_argument);
  }
}

TEST_CASE("recomputed blocks give the loss and the gradients of plain ones, dropout included") {
  for (const MixerCase& c : mixer_cases()) {
    INFO(c.name);
    std::vector<std::vector<real>> gradients;
    std::vector<real> losses;
    for (const bool recompute : {false, true}) {
      auto config = small<LanguageModelConfig>(c.config);
      config.recompute = recompute;
      config.dropout = 0.3;
      const auto built = redrawn(language_model(config));
      const Batch batch = next_token_batch(ragged(16), 6);
      TapeScope scope;
      const TaskLoss loss = built.model->loss(batch, context_of(batch, true));
      losses.push_back(loss.sum.value().item());
      scope.backward(loss.sum);
      gradients.push_back(gradients_of(*built.store));
    }
    CHECK(std::abs(losses[0] - losses[1]) <= (sizeof(real) == 4 ? 1e-6 : 1e-14) * std::abs(losses[0]));
    const int64_t size = static_cast<int64_t>(gradients[0].size());
    CHECK(relative_error(Array({size}, gradients[1]), Array({size}, gradients[0])) <=
          (sizeof(real) == 4 ? 1e-6 : 1e-14));
  }
}

TEST_CASE("a configuration that contradicts itself is refused with its key") {
  for (MixerCase& c : mixer_cases()) {
    if (!set_option(c.config, "heads", "3")) continue;
    INFO(c.name);
    CHECK_THROWS_WITH_AS(language_model(small<LanguageModelConfig>(c.config)),
                         "model.layers.0.mixer.heads: 3 heads do not divide the width 20", ConfigError);
  }
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
