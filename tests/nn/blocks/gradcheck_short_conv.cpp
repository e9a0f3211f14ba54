// Mixers with a short convolution in front against finite differences: input and all parameters, both directions.
#include "tests/nn/blocks/short_conv_cases.hpp"
#include "tests/nn/module_gradients.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

TEST_CASE("short convolution: both directions, padding and packed documents") {
  const Threads one(1);  // thousands of tiny passes
  const Context context{ragged_segments(13)};
  for (const MixerCase& c : short_conv_cases())
    for (const bool causal : {true, false}) {
      const auto built = built_mixer(c, causal, 13);
      check_gradients(
          c.name + (causal ? ", causal" : ", bidirectional"), *built.store, {4, 13, width},
          [&](const Var& x) { return built.module->forward(x, context); }, 12);
    }
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
