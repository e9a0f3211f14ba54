#include "tests/nn/systems/gated/mixing_weights.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

TEST_CASE("the mixing weights of gau are those it mixes with, of prefixes too") {
  for (const bool causal : {true, false})
    for (const bool turned : {true, false}) {
      GauConfig config;
      config.rotary.enabled = turned;
      config.key_dim = 10;
      for (const bool prefixes : {false, causal}) check_gated(config, 2 * width, causal, prefixes);
    }
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
