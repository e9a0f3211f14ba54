// AFT against finite differences: all options, long tiles, documents of one token, an inner width.
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
  for (const MixerCase& c : gradient_cases()) check_mixer_gradients(c, ragged_segments(13), 30);
}

TEST_CASE("AFT: the lengths of tiles that users get, on two threads") {
  const Threads two(2);
  // Over two strips or tiles of 64.
  for (const MixerCase& c : mixer_cases()) check_mixer_gradients(c, Segments::full(1, 131), 5);
}

TEST_CASE("AFT on documents of one token") {
  const Threads one(1);
  for (const MixerCase& c : mixer_cases()) check_mixer_gradients(c, Segments::full(2, 1), 20);
}

TEST_CASE("gradients of AFT of an inner width, both directions, padding and packed documents") {
  AftProjections wide = biased, narrow = plain;
  wide.inner = 60;
  narrow.inner = 8;
  const std::vector<MixerConfig> configs = {with_projections(AftSimpleConfig{}, wide),
                                            full_config(PositionBias::dense, narrow),
                                            local_config(3, PositionBias::factorised, wide), conv_config(5, 4, narrow)};
  for (const MixerConfig& config : configs)
    check_mixer_gradients({mixer_label(config), config}, ragged_segments(11), 12);
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
