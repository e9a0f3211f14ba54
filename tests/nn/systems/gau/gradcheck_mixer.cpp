// GAU against finite differences: every kernel, form of logits and normaliser with every position bias, turned and not.
#include "core/machine/parallel.hpp"
#include "tests/nn/module_gradients.hpp"
#include "tests/nn/systems/gau/cases.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

TEST_CASE("GAU: gradients of all its forms, both directions, padding and packed documents") {
  const Threads one(1);
  const Context context{ragged_segments(11)};
  for (const bool causal : {true, false}) {
    for (const MixerCase& c : gau_cases()) {
      for (const auto& bias : enum_names(RelativeBiasKind{})) {
        for (const bool turned : {true, false}) {
          GauConfig config = std::get<GauConfig>(c.config);
          config.position_bias = bias.value;
          config.rotary.enabled = turned;
          const auto built = built_mixer(config, causal, 11);
          check_gradients(
              c.name + ", bias " + bias.name + (turned ? ", turned" : "") + (causal ? ", causal" : ""), *built.store,
              {4, 11, width}, [&](const Var& x) { return built.module->forward(x, context); }, 6);
        }
      }
    }
  }
}

TEST_CASE("GAU: gradients past the boundary of a tile, on two threads") {
  const Threads two(2);
  const Context context = Context::evaluation(1, 131);
  for (const bool causal : {true, false}) {
    for (const MixerCase& c : gau_cases()) {
      const auto built = built_mixer(c.config, causal, 131);
      check_gradients(
          c.name + (causal ? ", causal" : ""), *built.store, {1, 131, width},
          [&](const Var& x) { return built.module->forward(x, context); }, 6);
    }
  }
}

TEST_CASE("GAU: gradients of documents of one token") {
  const Threads one(1);
  for (const bool causal : {true, false}) {
    for (const MixerCase& c : gau_cases()) {
      const auto built = built_mixer(c.config, causal, 3);
      const Var x = Var::leaf(normal_array({2, 1, width}, 3));
      std::vector<std::pair<std::string, Var>> leaves{{"x", x}};
      for (const Param& param : built.store->params()) leaves.emplace_back(param.name, param.var);
      GradcheckOptions options;
      options.samples = 10;
      options.floor = 1e-8;  // some single logits lie far out in the tail of their kernel
      const auto report =
          gradcheck([&] { return built.module->forward(x, Context::evaluation(2, 1)); }, leaves, options);
      CHECK_MESSAGE(report.ok, c.name, ": ", report.worst);
    }
  }
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
