// AFT with an inner width against finite differences.
#include <doctest/doctest.h>

#include "tests/nn/module_gradients.hpp"
#include "tests/nn/systems/aft/cases.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace testing {
namespace {

TEST_CASE("gradients of AFT of an inner width, both directions, padding and packed documents") {
  const Context ragged{ragged_segments(11)};
  AftProjections wide = biased, narrow = plain;
  wide.inner = 50;
  narrow.inner = 8;
  AftConvConfig conv = conv_config(5, 4, narrow);
  conv.kernel_eps = 0;
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
}  // namespace testing
}  // namespace capstan::CAPSTAN_PRECISION
