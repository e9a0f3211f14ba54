// Multi-head attention against finite differences: input and all parameters, options crossed, both directions.
#include "nn/systems/mixer_config.hpp"
#include "tests/nn/module_gradients.hpp"
#include "tests/nn/systems/attention/cases.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

TEST_CASE("attention: all options, both directions, padding and packed documents") {
  const Threads one(1);  // thousands of tiny passes
  for (const MixerCase& c : attention_cases()) check_mixer_gradients(c, ragged_segments(13), 12);
}

TEST_CASE("attention: over three tiles on two threads, heads that turn as a whole, and documents of one token") {
  const Threads two(2);
  for (const auto& pairs : enum_names(RotaryPairs{}))
    for (const Segments& segments : {Segments::full(1, 131), Segments::full(3, 1)}) {
      AttentionConfig config;
      config.heads = 5;
      config.rotary.enabled = true;
      config.rotary.pairs = pairs.value;
      config.bias = true;
      check_mixer_gradients({pairs.name, config}, segments, 10);
    }
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
