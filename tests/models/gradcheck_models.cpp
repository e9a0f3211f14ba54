// Whole models against finite differences.
#include "core/autograd/gradcheck.hpp"
#include "tests/models/samples.hpp"
#include "tests/support/arrays.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

GradcheckReport check_task(const Task& task, ParamStore& store, const Batch& batch, bool training = false,
                           bool finalize = false) {
  redraw(store);
  if (finalize) store.finalize();
  GradcheckOptions options;
  options.samples = training ? 20 : 6;
  std::vector<std::pair<std::string, Var>> leaves;
  for (const Param& param : store.params()) leaves.emplace_back(param.name, param.var);
  const Context context = context_of(batch, training);
  return gradcheck([&] { return task.loss(batch, context).sum; }, leaves, options);
}

TEST_CASE("language models: gradients of the whole model") {
  for (const MixerCase& c : mixer_cases()) {
    const auto built = language_model(small<LanguageModelConfig>(c.config));
    const GradcheckReport report = check_task(*built.model, *built.store, next_token_batch(ragged(12), 2));
    CHECK_MESSAGE(report.ok, c.name, ": ", report.worst);
  }
}

TEST_CASE("masked language models: gradients of the whole model") {
  for (const MixerCase& c : mixer_cases()) {
    for (const bool tied : {true, false}) {
      auto config = small<MaskedLanguageModelConfig>(c.config);
      config.tied_output = tied;
      config.masking.share = 0.4;
      const auto built = masked_language_model(config);
      const GradcheckReport report = check_task(*built.model, *built.store, next_token_batch(ragged(12), 2));
      CHECK_MESSAGE(report.ok, c.name, ": ", report.worst);
    }
  }
}

TEST_CASE("classifiers: gradients of the whole model") {
  for (const MixerCase& c : mixer_cases()) {
    const auto built = classifier(small<TextClassifierConfig>(c.config));
    const GradcheckReport report = check_task(*built.model, *built.store, labelled_batch({8, 5, 1}, 3));
    CHECK_MESSAGE(report.ok, c.name, ": ", report.worst);
  }
}

TEST_CASE("classifiers with n-grams, class weights and label smoothing: gradients of the whole model") {
  for (const bool finalized : {false, true}) {
    auto config = small<TextClassifierConfig>(any_mixer());
    set_ngrams(config.ngrams, {1, 2}, 7, 3);  // collisions, too
    config.ngrams.dropout = 0.2;
    config.ngrams.scale = 1;
    config.class_weights = ListedWeights{{0.5, 2, 3}};
    config.loss = CrossEntropyConfig{0.1};
    const auto built = classifier(config);
    const GradcheckReport report =
        check_task(*built.model, *built.store, labelled_batch({8, 5, 1}, 3), /*training=*/true, finalized);
    CHECK_MESSAGE(report.ok, "finalized ", finalized, ": ", report.worst);
  }
}

TEST_CASE("multi-label classifiers with class weights and label smoothing: gradients of the whole model") {
  auto config = small<TextClassifierConfig>(any_mixer());
  config.class_weights = ListedWeights{{0.5, 2, 3}};
  config.loss = CrossEntropyConfig{0.1};
  const auto built = classifier(config, 1, /*multi_label=*/true);
  Batch batch = labelled_batch({8, 5, 1}, 3);
  batch.labels = Ids({3, 3}, std::vector<int32_t>{0, 0, 0, 0, 1, 0, 1, 1, 1});
  const GradcheckReport report = check_task(*built.model, *built.store, batch, /*training=*/true);
  CHECK_MESSAGE(report.ok, report.worst);
}

TEST_CASE("losses of classifiers: gradients of the logits") {
  const Ids labels({4}, std::vector<int32_t>{2, 0, 1, ignored_target}),
      sets(Shape{4, 3}, {0, 0, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1});
  const Array weights(Shape{3}, {0.5, 2, 3});
  for (const LossConfig& config : loss_cases()) {
    for (const bool multi_label : {false, true}) {
      const Var logits = Var::leaf(random_array({4, 3}, 5));
      const LossInput input{logits, multi_label ? sets : labels, weights, multi_label};
      const GradcheckReport report =
          gradcheck([&] { return std::visit([&](const auto& loss) { return loss_sum(loss, input); }, config); },
                    {{"logits", logits}});
      CHECK_MESSAGE(report.ok, config.index(), " ", multi_label, ": ", report.worst);
    }
  }
}

TEST_CASE("gradients of every other part a configuration can ask for") {
  for (const Pooling pooling : {Pooling::cls, Pooling::last, Pooling::attention}) {
    auto config = small<TextClassifierConfig>(any_mixer());
    config.pooling = pooling;
    config.causal = pooling == Pooling::last;
    config.layers[0].norm_placement = NormPlacement::post;
    const auto built = classifier(config);
    const GradcheckReport report = check_task(*built.model, *built.store, labelled_batch({8, 5, 1}, 3));
    CHECK_MESSAGE(report.ok, enum_name(pooling), ": ", report.worst);
  }
  for (const bool recompute : {false, true}) {
    auto config = small<LanguageModelConfig>(any_mixer());
    config.tied_output = false;
    config.output_bias = recompute;
    config.positions = recompute ? Positions::scaled_sinusoidal : Positions::sinusoidal;
    config.embedding_norm = true;
    config.final_norm.type = NormKind::rms;
    config.recompute = recompute;
    set_ngrams(config.ngram_embedding, {2, 3}, 7, 3);  // collisions, too
    config.ngram_embedding.scale = 1;
    config.ngram_embedding.every_block = true;
    const auto built = language_model(config);
    const GradcheckReport report = check_task(*built.model, *built.store, next_token_batch(ragged(12), 2));
    CHECK_MESSAGE(report.ok, "recompute ", recompute, ": ", report.worst);
  }
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
