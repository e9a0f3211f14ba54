// AFT against finite differences: all options, long tiles, documents of one token, an inner width.
#include <doctest/doctest.h>

#include "core/autograd/gradcheck.hpp"
#include "tests/nn/module_gradients.hpp"
#include "tests/nn/systems/aft/cases.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

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
      const Context context = Context::evaluation(1, 131);  // over two strips or tiles of 64
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

TEST_CASE("gradients of AFT of an inner width, both directions, padding and packed documents") {
  const Context ragged{ragged_segments(11)};
  AftProjections wide = biased, narrow = plain;
  wide.inner = 60;
  narrow.inner = 8;
  AftConvConfig conv = conv_config(5, 4, narrow);
  const std::vector<MixerConfig> configs = {with_projections(AftSimpleConfig{}, wide),
                                            full_config(PositionBias::dense, narrow),
                                            local_config(3, PositionBias::factorised, wide), conv};
  for (const MixerConfig& config : configs)
    for (const bool causal : {true, false}) {
      const auto built = built_mixer(config, causal, 11);
      check_gradients(
          mixer_label(config) + (causal ? ", causal" : ", bidirectional"), *built.store, {4, 11, width},
          [&](const Var& x) { return built.module->forward(x, ragged); }, 12);
    }
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
