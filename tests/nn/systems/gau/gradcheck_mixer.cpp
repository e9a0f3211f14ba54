// GAU against finite differences: every kernel, form of logits and normaliser with every position bias, turned and not.
#include "tests/nn/module_gradients.hpp"
#include "tests/nn/systems/gau/cases.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

TEST_CASE("GAU: gradients of all its forms, both directions, padding and packed documents") {
  const Threads one(1);
  for (const MixerCase& c : gau_cases())
    for (const auto& bias : enum_names(RelativeBiasKind{}))
      for (const bool turned : {true, false}) {
        GauConfig config = std::get<GauConfig>(c.config);
        config.position_bias = bias.value;
        config.rotary.enabled = turned;
        check_mixer_gradients({c.name + ", bias " + bias.name + (turned ? ", turned" : ""), config},
                              ragged_segments(11), 6);
      }
}

TEST_CASE("GAU: gradients past the boundary of a tile, on two threads") {
  const Threads two(2);
  for (const MixerCase& c : gau_cases()) check_mixer_gradients(c, Segments::full(1, 131), 6);
}

TEST_CASE("GAU: gradients of documents of one token") {
  const Threads one(1);
  // Some single logits lie far out in the tail of their kernel.
  for (const MixerCase& c : gau_cases()) check_mixer_gradients(c, Segments::full(2, 1), 10, /*floor=*/1e-8);
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
