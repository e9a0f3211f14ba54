// Mixers with a short convolution in front against finite differences: input and all parameters, both directions.
#include "tests/nn/blocks/short_conv_cases.hpp"
#include "tests/nn/module_gradients.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

TEST_CASE("short convolution: both directions, padding and packed documents") {
  const Threads one(1);  // thousands of tiny passes
  for (const MixerCase& c : short_conv_cases()) check_mixer_gradients(c, ragged_segments(13), 12);
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
