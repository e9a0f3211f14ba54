// Whole models against PyTorch (tests/parity/README.md).
#include "core/kernels/optimizer.hpp"
#include "nn/layers/feed_forward.hpp"
#include "tests/models/samples.hpp"
#include "tests/support/fixture.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

Batch batch_of(const Fixture& fixture) {
  const Ids tokens = fixture.ids("tokens");
  return {tokens, fixture.ids("segment_ids"), fixture.ids("labels"), Ids({tokens.dim(0)}, 0)};
}

void check_gradients(const Fixture& fixture, const Task& task, const ParamStore& store) {
  const Batch batch = batch_of(fixture);
  TapeScope scope;
  const TaskLoss loss = task.loss(batch, context_of(batch, true));
  CHECK(relative_error(loss.sum.value().reshape({1}), fixture.array("loss_sum")) <= parity_tolerance);
  scope.backward(loss.sum);
  for (const Param& param : store.params()) {
    INFO(param.name);
    CHECK(relative_error(param.var.grad(), fixture.array("gradient." + param.name)) <= parity_tolerance);
  }
}

template <class Config>
Config config_of(const Fixture& fixture, const MixerConfig& mixer) {
  LayerConfig layer;
  layer.mixer = mixer;
  layer.repeat = 2;
  layer.feed_forward.expansion = static_cast<double>(fixture.array("parameter.blocks.0.feed_forward.up.bias").size()) /
                                 static_cast<double>(fixture.array("parameter.final_norm.gain").size());
  Config config;
  config.width = fixture.array("parameter.final_norm.gain").size();
  config.max_length = fixture.array("parameter.positions.weight").dim(0);
  config.layers = {layer};
  config.positions = Positions::learned;
  return config;
}

std::optional<MixerConfig> local_mixer(const Fixture& fixture) {
  const int64_t rank = fixture.array("parameter.blocks.0.mixer.position_u").dim(1);
  return mixer_called("aft-local",
                      {{"window", fixture.text("mixer.window")}, {"rank", std::to_string(rank)}, {"bias", "true"}});
}

Built<LanguageModel> language_model_of(const Fixture& fixture, const MixerConfig& mixer) {
  Built<LanguageModel> built;
  built.model = std::make_unique<LanguageModel>(Scope(*built.store, 1), config_of<LanguageModelConfig>(fixture, mixer),
                                                fixture.array("parameter.embed.weight").dim(0));
  fixture.load(*built.store);
  return built;
}

TEST_CASE("language model: PyTorch's logits, loss and gradients") {
  const Fixture fixture("language_model");
  const auto mixer = local_mixer(fixture);
  if (!mixer) return;
  const auto built = language_model_of(fixture, *mixer);
  const Batch batch = batch_of(fixture);
  const Segments segments(batch.segment_ids);
  Array logits = built.model->logits(batch.tokens, {segments}).value().clone();
  for (int64_t token = 0; token < batch.tokens.size(); ++token)  // those of padding must not be read
    if (segments.ids()[token] == 0) std::fill_n(logits.mutable_data() + token * logits.dim(2), logits.dim(2), real{0});
  CHECK(relative_error(logits, fixture.array("logits")) <= parity_tolerance);
  check_gradients(fixture, *built.model, *built.store);
}

/// The mean losses of 20 steps of AdamW are the fixture's `losses`.
void check_curve(const Fixture& fixture, const Task& task, ParamStore& store, const std::string& losses,
                 double learning_rate, double decay) {
  store.finalize();
  Array m = Array::zeros({store.flat_size()}), v = m.clone();
  const std::vector<real> expected = fixture.array(losses).to_vector();
  REQUIRE(expected.size() == 20);
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const Ids tokens = fixture.ids("curve.tokens", at);
    const Batch batch{tokens, fixture.ids("curve.segment_ids", at), fixture.ids("curve.labels", at),
                      Ids({tokens.dim(0)}, 0)};
    TapeScope scope;
    const TaskLoss loss = task.loss(batch, context_of(batch, true));
    const double mean = static_cast<double>(loss.sum.value().item()) / static_cast<double>(loss.targets);
    CHECK_MESSAGE(
        std::abs(mean - static_cast<double>(expected[i])) <= parity_tolerance * static_cast<double>(expected[i]),
        "step ", i, ": ", mean, " instead of ", expected[i]);
    scope.backward(loss.sum, static_cast<real>(1.0 / static_cast<double>(loss.targets)));
    kernels::adamw({store.values(), store.grads(), store.flat_size(), store.decay_size(), 1}, m.mutable_data(),
                   v.mutable_data(), {learning_rate, 0.9, 0.999, 1e-8, decay, at + 1});
  }
}

TEST_CASE("language model: PyTorch's loss curve over 20 steps of AdamW") {
  const Fixture fixture("language_model");
  const auto mixer = local_mixer(fixture);
  if (!mixer) return;
  const auto built = language_model_of(fixture, *mixer);
  check_curve(fixture, *built.model, *built.store, "curve.losses_positions_undecayed", 1e-2, 0.1);
}

/// What logits() gives, with 0 at padding, where it must not be read.
Array without_padding(const Array& all, const Segments& segments) {
  Array logits = all.clone();
  for (int64_t token = 0; token < segments.ids().size(); ++token)
    if (segments.ids()[token] == 0) std::fill_n(logits.mutable_data() + token * logits.dim(2), logits.dim(2), real{0});
  return logits;
}

TEST_CASE("masked language model: PyTorch's logits, loss and gradients") {
  const Fixture fixture("masked_language_model");
  const auto mixer = local_mixer(fixture);
  if (!mixer) return;
  auto config = config_of<MaskedLanguageModelConfig>(fixture, *mixer);
  config.masking = {1, 1, 0};  // the labels choose the tokens
  const int64_t vocabulary_size = fixture.array("parameter.embed.weight").dim(0) - 1;
  Built<MaskedLanguageModel> built;
  built.model = std::make_unique<MaskedLanguageModel>(Scope(*built.store, 1), config, vocabulary_size, vocabulary_size);
  fixture.load(*built.store);
  const Batch batch = batch_of(fixture);
  const Context context = context_of(batch);
  CHECK(built.model->masking().apply(batch, context.segments, true, 0).tokens.to_vector() ==
        fixture.ids("read").to_vector());
  CHECK(relative_error(without_padding(built.model->logits(fixture.ids("read"), context).value(), context.segments),
                       fixture.array("logits")) <= parity_tolerance);
  check_gradients(fixture, *built.model, *built.store);
}

TEST_CASE("prefix language model: PyTorch's logits, loss and gradients") {
  const Fixture fixture("prefix_language_model");
  const auto mixer = mixer_called("aft-simple", {{"bias", "true"}});
  if (!mixer) return;
  auto config = config_of<LanguageModelConfig>(fixture, *mixer);
  config.prefix = PrefixRule::bidirectional;
  Built<LanguageModel> built;
  built.model =
      std::make_unique<LanguageModel>(Scope(*built.store, 1), config, fixture.array("parameter.embed.weight").dim(0));
  fixture.load(*built.store);
  const Batch batch = batch_of(fixture);
  Context context = context_of(batch);
  context.prefixes = prefixes_of(context.segments, batch.labels);
  CHECK(context.prefixes.ids().to_vector() == fixture.ids("sources").to_vector());
  CHECK(relative_error(without_padding(built.model->logits(batch.tokens, context).value(), context.segments),
                       fixture.array("logits")) <= parity_tolerance);
  check_gradients(fixture, *built.model, *built.store);
}

TEST_CASE("classifier: PyTorch's logits, loss and gradients") {
  const Fixture fixture("classifier");
  const auto mixer = mixer_called("aft-simple", {{"bias", "true"}});
  if (!mixer) return;
  Built<TextClassifier> built;
  built.model = std::make_unique<TextClassifier>(
      Scope(*built.store, 1), config_of<TextClassifierConfig>(fixture, *mixer),
      fixture.array("parameter.embed.weight").dim(0), fixture.array("parameter.head.bias").size());
  fixture.load(*built.store);
  const Batch batch = batch_of(fixture);
  CHECK(relative_error(built.model->logits(batch.tokens, context_of(batch)).value(), fixture.array("logits")) <=
        parity_tolerance);
  check_gradients(fixture, *built.model, *built.store);
}

/// A layer of a published model of width 16: post-norm, unless told otherwise.
LayerConfig published_layer(const MixerConfig& mixer, FeedForwardKind activation, double eps, NormPlacement placement) {
  LayerConfig layer;
  layer.mixer = mixer;
  layer.repeat = 2;
  layer.feed_forward = {activation, 2};
  layer.norm.eps = eps;
  layer.norm_placement = placement;
  return layer;
}

/// Logits, loss, gradients and loss curve of a published model whose weights the fixture has under Capstan's names.
template <class Model>
void check_published(const Fixture& fixture, const Built<Model>& built) {
  fixture.load(*built.store);
  const Batch batch = batch_of(fixture);
  const Context context = context_of(batch);
  const Array logits = built.model->logits(batch.tokens, context).value();
  CHECK(relative_error(logits.rank() == 3 ? without_padding(logits, context.segments) : logits,
                       fixture.array("logits")) <= parity_tolerance);
  check_gradients(fixture, *built.model, *built.store);
  check_curve(fixture, *built.model, *built.store, "curve.losses", std::stod(fixture.text("learning_rate")), 0);
}

TEST_CASE("the classifier of Fastformer's authors: logits, gradients and loss curve of their notebook") {
  const Fixture fixture("published_fastformer");
  const auto mixer = mixer_called("fastformer", {{"heads", "4"}, {"bias", "true"}});
  if (!mixer) return;
  constexpr double eps = 1e-12;  // of BERT's norms, which the notebook has
  TextClassifierConfig config;
  config.width = 16;
  config.max_length = 24;
  config.positions = Positions::learned;
  config.embedding_norm = true;
  config.final_norm.eps = eps;
  config.pooling = Pooling::attention;
  config.layers = {published_layer(*mixer, FeedForwardKind::gelu, eps, NormPlacement::post)};
  Built<TextClassifier> built;
  built.model = std::make_unique<TextClassifier>(Scope(*built.store, 1), config, 19, 5);
  check_published(fixture, built);
}

TEST_CASE("PyTorch's TransformerModel, pre- and post-norm: logits, gradients and loss curve") {
  const auto mixer = mixer_called("attention", {{"heads", "4"}, {"bias", "true"}});
  if (!mixer) return;
  for (const auto& placement : enum_names(NormPlacement{})) {
    LanguageModelConfig config;
    config.width = 16;
    config.max_length = 24;
    config.positions = Positions::sinusoidal;
    config.tied_output = false;
    config.output_bias = true;
    config.layers = {published_layer(*mixer, FeedForwardKind::relu, 1e-5, placement.value)};
    Built<LanguageModel> built;
    built.model = std::make_unique<LanguageModel>(Scope(*built.store, 1), config, 19);
    check_published(Fixture(std::string("published_transformer_") + placement.name), built);
  }
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
