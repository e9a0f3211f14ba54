// Multi-head attention against finite differences: input and all parameters, options crossed, both directions.
#include "nn/systems/mixer_config.hpp"
#include "tests/nn/module_gradients.hpp"
#include "tests/nn/systems/attention/cases.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

TEST_CASE("attention: all options, both directions, padding and packed documents") {
  const Threads one(1);  // thousands of tiny passes
  const Context context{ragged_segments(13)};
  for (const MixerCase& c : attention_cases()) {
    for (const bool causal : {true, false}) {
      const auto built = built_mixer(c.config, causal, 13);
      check_gradients(
          c.name + (causal ? ", causal" : ", bidirectional"), *built.store, {4, 13, width},
          [&](const Var& x) { return built.module->forward(x, context); }, 12);
    }
  }
}

TEST_CASE("attention: over three tiles on two threads, heads that turn as a whole, and documents of one token") {
  const Threads two(2);
  for (const auto& pairs : enum_names(RotaryPairs{})) {
    for (const bool causal : {true, false}) {
      for (const Segments& segments : {Segments::full(1, 131), Segments::full(3, 1)}) {
        AttentionConfig config;
        config.heads = 3;
        config.rotary.enabled = true;
        config.rotary.pairs = pairs.value;
        config.bias = true;
        ParamStore store;
        const auto mixer = make_mixer(Scope(store, 1), {12, 1, causal, 1}, config);
        const Var x = Var::leaf(normal_array({segments.batch(), segments.length(), 12}, 3));
        redraw(store);
        std::vector<std::pair<std::string, Var>> leaves{{"x", x}};
        for (const Param& param : store.params()) leaves.emplace_back(param.name, param.var);
        GradcheckOptions options;
        options.samples = 10;
        const auto report = gradcheck([&] { return mixer->forward(x, {segments}); }, leaves, options);
        CHECK_MESSAGE(report.ok, pairs.name, ", causal ", causal, ": ", report.worst);
      }
    }
  }
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
