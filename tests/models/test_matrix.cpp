// Every system in every task, wired as its paper wires it: all its parameters learn, it learns a batch by heart, and
// what it has learnt is there in evaluation, in decoding and in prediction. One table.
#include <algorithm>

#include "tests/models/systems.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

Batch text_batch() { return next_token_batch(ragged(16), 6); }

double norm(const Array& array) {
  double sum = 0;
  for (int64_t i = 0; i < array.size(); ++i) sum += static_cast<double>(array[i]) * static_cast<double>(array[i]);
  return std::sqrt(sum);
}

/// With weights of sigma 0.5, turning a parameter by its own size along its gradient must move the loss: a gradient
/// that is not zero but drowned is none. Gauge parameters are those whose gradient is zero.
void check_gradients_matter(const Task& task, ParamStore& store, const Batch& batch) {
  redraw(store);
  store.finalize();
  TapeScope scope;
  const TaskLoss loss = task.loss(batch, context_of(batch, true));
  scope.backward(loss.sum);
  for (const Param& param : store.params()) {
    INFO(param.name);
    const double effect = norm(param.var.grad()) * norm(param.var.value()) / loss.sum.value().item();
    CHECK(effect > 1e-3);
  }
}

/// Plain gradient descent on one batch until its mean loss is below `goal`; returns the last one.
double learn_by_heart(const Task& task, ParamStore& store, const Batch& batch, double goal) {
  double loss = 0;
  for (int step = 0; step < 400; ++step) {
    loss = descend(task, store, batch, 0.2);
    if (loss < goal) break;
  }
  return loss;
}

/// The likeliest next token after each token of row 0, forward and decoded token by token.
void check_decodes_what_it_learnt(const LanguageModel& model, const Batch& batch) {
  const int64_t length = batch.tokens.dim(1);
  const Ids row = batch.tokens.rows(0, 1);
  const Array forward = model.logits(row, Context::evaluation(1, length)).value();
  DecodeState state = model.make_state(1);
  int64_t correct = 0;
  for (int64_t t = 0; t < length; ++t) {
    const Array logits = model.step(row.reshape({length}).rows(t, t + 1), state);
    CHECK(relative_error(logits, forward.reshape({length, vocabulary}).rows(t, t + 1), 1) <=
          (sizeof(real) == 4 ? 1e-4 : 1e-11));
    const real* const best = std::max_element(logits.data(), logits.data() + vocabulary);
    correct += best - logits.data() == batch.labels[t] ? 1 : 0;
  }
  CHECK(correct > length / 2);
}

TEST_CASE("language model: every system trains, evaluates and decodes") {
  const Batch batch = text_batch();
  for (const System& system : systems()) {
    INFO(system.name);
    const auto drawn = language_model(model_config<LanguageModelConfig>(system));
    check_gradients_matter(*drawn.model, *drawn.store, batch);

    const auto built = finalized(language_model(model_config<LanguageModelConfig>(system)));
    const double first = descend(*built.model, *built.store, batch, 0);
    CHECK(learn_by_heart(*built.model, *built.store, batch, first / 4) < first / 2);
    const TaskLoss evaluated = built.model->loss(batch, context_of(batch));
    CHECK(evaluated.sum.value().item() < first / 2 * static_cast<double>(evaluated.targets));
    CHECK(evaluated.correct > evaluated.targets / 2);
    check_decodes_what_it_learnt(*built.model, batch);
  }
}

/// The likeliest token after the source of row 0 and after each token of its target, read and decoded as in prediction.
void check_completes_what_it_learnt(const LanguageModel& model, const Batch& batch, int64_t source, int64_t target) {
  const Ids row = batch.tokens.rows(0, 1);
  DecodeState state = model.make_state(1);
  Ids read({1, source});
  std::copy_n(row.data(), source, read.mutable_data());
  Array logits = model.prefill(read, state);
  int64_t correct = 0;
  for (int64_t t = source - 1;; ++t) {
    const real* const best = std::max_element(logits.data(), logits.data() + vocabulary);
    correct += best - logits.data() == batch.labels[t] ? 1 : 0;
    if (t + 1 == source + target) break;
    logits = model.step(Ids({1}, row[t + 1]), state);
  }
  CHECK(correct > 3 * (target + 1) / 4);
}

TEST_CASE("pairs: every system trains, evaluates and completes sources, read causally or as a whole") {
  const Batch batch = pair_batch();
  for (const System& system : systems()) {
    for (const PrefixRule rule : {PrefixRule::causal, PrefixRule::bidirectional}) {
      if (rule == PrefixRule::bidirectional && !prefix_obstacle(system.layer.mixer).empty()) continue;
      INFO(system.name << ", " << enum_name(rule));
      auto config = model_config<LanguageModelConfig>(system);
      config.prefix = rule;
      const auto drawn = language_model(config);
      check_gradients_matter(*drawn.model, *drawn.store, batch);

      const auto built = finalized(language_model(config));
      const double first = descend(*built.model, *built.store, batch, 0);
      CHECK(learn_by_heart(*built.model, *built.store, batch, first / 8) < first / 4);
      const TaskLoss evaluated = built.model->loss(batch, context_of(batch));
      CHECK(evaluated.targets == 15);
      CHECK(evaluated.correct > 12);
      check_completes_what_it_learnt(*built.model, batch, 5, 7);
    }
  }
}

TEST_CASE("masked language model: every system trains, evaluates and fills blanks") {
  Batch batch = text_batch();
  for (const System& system : systems()) {
    INFO(system.name);
    auto config = model_config<MaskedLanguageModelConfig>(system);
    config.masking.share = 0.4;  // of few tokens
    const auto drawn = masked_language_model(config);
    check_gradients_matter(*drawn.model, *drawn.store, batch);

    const auto built = finalized(masked_language_model(config));
    const double first = descend(*built.model, *built.store, batch, 0);
    CHECK(learn_by_heart(*built.model, *built.store, batch, first / 8) < first / 4);
    // The step of descend() is 0: the same blanks again, filled as in prediction.
    const Context training = context_of(batch, true);
    const MaskedTokens masked = built.model->masking().apply(batch, training.segments, true, 0);
    const Array logits = built.model->logits(masked.tokens, context_of(batch)).value();
    size_t correct = 0;
    for (size_t i = 0; i < masked.places.size(); ++i) {
      const real* const scores = logits.data() + masked.places[i] * (vocabulary + 1);
      correct += std::max_element(scores, scores + vocabulary) - scores == masked.targets[i] ? 1 : 0;
    }
    CHECK(correct > 3 * masked.places.size() / 4);
    const TaskLoss evaluated = built.model->loss(batch, context_of(batch));
    CHECK(evaluated.targets > 0);
    CHECK(evaluated.correct <= evaluated.targets);
    CHECK(std::isfinite(evaluated.sum.value().item()));
  }
}

TEST_CASE("text classifier: every system trains, evaluates and predicts") {
  const Batch batch = labelled_batch({16, 7, 11}, 7);
  for (const System& system : systems()) {
    for (const Pooling pooling : {Pooling::mean, Pooling::cls, Pooling::attention}) {
      INFO(system.name << ", " << enum_name(pooling));
      auto config = model_config<TextClassifierConfig>(system);
      config.pooling = pooling;
      const auto drawn = classifier(config);
      check_gradients_matter(*drawn.model, *drawn.store, batch);

      const auto built = finalized(classifier(config));
      const double first = descend(*built.model, *built.store, batch, 0);
      CHECK(learn_by_heart(*built.model, *built.store, batch, 0.2) < std::min(0.2, first / 2));
      const TaskLoss evaluated = built.model->loss(batch, context_of(batch));
      CHECK(evaluated.correct == 3);
      const Array logits = built.model->logits(batch.tokens, context_of(batch)).value();
      for (int64_t row = 0; row < 3; ++row) {
        const real* const scores = logits.data() + 3 * row;
        CHECK(std::max_element(scores, scores + 3) - scores == batch.labels[row]);
      }
    }
  }
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
