#include "tests/nn/systems/gated/mixing_weights.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

TEST_CASE("the mixing weights of flash are those of its chunks, of prefixes too; without them it has none to show") {
  for (const bool causal : {true, false})
    for (const bool turned : {true, false}) {
      FlashConfig config;
      config.rotary.enabled = turned;
      config.key_dim = 10;
      config.chunk = 13;
      config.global = false;
      for (const bool prefixes : {false, causal}) check_gated(config, 2 * width, causal, prefixes);
    }
  FlashConfig global_only;
  global_only.local = false;
  const Subject flash(global_only, true, Segments::full(1, 4));
  CHECK(flash.built.module->mixing_weights(Var(flash.x), flash.context).empty());
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
