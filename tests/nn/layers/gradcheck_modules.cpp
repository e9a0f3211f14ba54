// Every module of nn/ against finite differences: of its input and of all its parameters.
#include <doctest/doctest.h>

#include "core/ops/math.hpp"
#include "nn/systems/make_mixer.hpp"
#include "tests/nn/module_gradients.hpp"
#include "tests/nn/systems/aft/cases.hpp"
#include "tests/support/agreement.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace testing {
namespace {

TEST_CASE("linear, with each activation") {
  for (const auto& activation : enum_names(Activation{})) {
    for (const bool bias : {true, false}) {
      ParamStore store;
      const Linear linear(Scope(store, 1), {5, 37, bias});
      check_gradients(std::string("linear ") + activation.name, store, {2, 3, 5},
                      [&, a = activation.value](const Var& x) { return linear(x, a); });
    }
  }
}

TEST_CASE("embedding of tokens and of positions") {
  ParamStore store;
  const Embedding words(Scope(store, 1) / "words", {7, width}), positions(Scope(store, 1) / "positions", {13, width});
  const Segments segments = ragged_segments(13);
  Ids ids(segments.ids().shape());
  for (int64_t i = 0; i < ids.size(); ++i) ids.mutable_data()[i] = static_cast<int32_t>(i * i % 7);
  check_gradients("embedding", store, {4, 13, width},
                  [&](const Var& x) { return x * words(ids) + positions(segments.positions()); });
}

TEST_CASE("norms") {
  for (const auto& kind : enum_names(NormKind{})) {
    ParamStore store;
    const Norm norm(Scope(store, 1) / "norm", {kind.value, 1e-5}, 37);
    check_gradients(std::string("norm ") + kind.name, store, {2, 3, 37}, norm);
  }
}

TEST_CASE("feed-forward networks of every kind") {
  for (const auto& kind : enum_names(FeedForwardKind{})) {
    if (kind.value == FeedForwardKind::none) continue;
    for (const bool bias : {true, false}) {
      ParamStore store;
      const FeedForward feed_forward(Scope(store, 1), {kind.value, 2.5, bias}, 15, 1);
      CHECK(feed_forward.hidden() == 38);
      check_gradients(std::string("feed-forward ") + kind.name, store, {2, 3, 15}, feed_forward);
    }
  }
}

/// Training: dropout is on, its masks fixed by the counters.
Context training_context(const Segments& segments) {
  Ids examples({segments.batch()});
  for (int64_t row = 0; row < segments.batch(); ++row)
    examples.mutable_data()[row] = static_cast<int32_t>(10 + 3 * row);
  return {segments, true, 6, examples};
}

TEST_CASE("dropout in training") {
  ParamStore store;
  const Dropout dropout(Scope(store, 1) / "dropout", 0.4);
  const Context context = training_context(Segments::full(3, 7));
  check_gradients(
      "dropout", store, {3, 7, width}, [&](const Var& x) { return dropout(x, context); }, 100);
}

TEST_CASE("blocks, pre- and post-norm, with and without feed-forward, dropout on") {
  const Threads one(1);
  const Context context = training_context(ragged_segments(13));
  for (const auto& placement : enum_names(NormPlacement{})) {
    for (const FeedForwardKind kind : {FeedForwardKind::gelu, FeedForwardKind::swiglu, FeedForwardKind::none}) {
      for (const MixerConfig& mixer :
           {MixerConfig(AftSimpleConfig{}), MixerConfig(local_config(5, PositionBias::factorised, biased))}) {
        LayerConfig config;
        config.mixer = mixer;
        config.feed_forward = {kind, 1.5, true};
        config.norm_placement = placement.value;
        ParamStore store;
        const Block block(Scope(store, 1), {width, 13, true, 1}, config, 0.3);
        check_gradients(
            std::string("block ") + placement.name + ", " + mixer_name(mixer), store, {4, 13, width},
            [&](const Var& x) { return block.forward(x, context); }, 12);
      }
    }
  }
}

/// The options of the position biases that mixer_cases() does not spell out,
/// bidirectional windows past the document too.
std::vector<MixerCase> gradient_cases() {
  std::vector<MixerCase> cases = mixer_cases();
  for (const PositionBias position_bias : {PositionBias::factorised, PositionBias::dense})
    for (const AftProjections& projections : {plain, biased, published, bare}) {
      cases.push_back({"full", full_config(position_bias, projections), 0, false, false});
      cases.push_back({"local", local_config(4, position_bias, projections), 4, false, false});
    }
  for (const AftProjections& projections : {plain, biased, published, bare}) {
    cases.push_back({"simple", with_projections(AftSimpleConfig{}, projections), 0, true});
    cases.push_back({"conv", conv_config(4, 5, projections), 4, true});
  }
  return cases;
}

TEST_CASE("AFT: all variants and options, both directions, padding and packed documents") {
  const Threads one(1);  // thousands of tiny passes
  const Context context{ragged_segments(13)};
  for (const bool causal : {true, false}) {
    for (const MixerCase& c : gradient_cases()) {
      const auto built = built_mixer(c.config, causal, 13);
      check_gradients(
          c.name + (causal ? ", causal" : ", bidirectional"), *built.store, {4, 13, width},
          [&](const Var& x) { return built.module->forward(x, context); }, 30);
    }
  }
}

TEST_CASE("AFT: the lengths of tiles that users get, on two threads") {
  const Threads two(2);
  for (const bool causal : {true, false}) {
    for (const MixerCase& c : mixer_cases()) {
      const auto built = built_mixer(c.config, causal, 131);
      const Context context = Context::evaluation(1, 131);  // over one tile of 128, two of 64
      check_gradients(
          c.name + (causal ? ", causal" : ", bidirectional"), *built.store, {1, 131, width},
          [&](const Var& x) { return built.module->forward(x, context); }, 5);
    }
  }
}

TEST_CASE("AFT on documents of one token") {
  const Threads one(1);
  for (const bool causal : {true, false}) {
    for (const MixerCase& c : mixer_cases()) {
      ParamStore store;
      const auto mixer = make_mixer(Scope(store, 1), {width, 3, causal, 1}, c.config);
      redraw(store);
      const Var x = Var::leaf(normal_array({2, 1, width}, 3));
      std::vector<std::pair<std::string, Var>> leaves{{"x", x}};
      for (const Param& param : store.params()) leaves.emplace_back(param.name, param.var);
      GradcheckOptions options;
      options.samples = 20;
      const auto report = gradcheck([&] { return mixer->forward(x, Context::evaluation(2, 1)); }, leaves, options);
      CHECK_MESSAGE(report.ok, c.name, ": ", report.worst);
    }
  }
}

}  // namespace
}  // namespace testing
}  // namespace capstan::CAPSTAN_PRECISION
