// Configurations of AFT for the tests of nn/.
#pragma once

#include <vector>

#include "tests/nn/mixer/mixer_suite.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

template <class Config>
Config with_projections(Config config, const AftProjections& projections) {
  static_cast<AftProjections&>(config) = projections;
  return config;
}

inline AftFullConfig full_config(PositionBias position_bias, const AftProjections& projections) {
  AftFullConfig config = with_projections(AftFullConfig{}, projections);
  config.position_bias = position_bias;
  config.rank = 3;
  return config;
}

inline AftLocalConfig local_config(int64_t window, PositionBias position_bias, const AftProjections& projections) {
  AftLocalConfig config = with_projections(AftLocalConfig{}, projections);
  config.window = window;
  config.position_bias = position_bias;
  config.rank = 3;
  return config;
}

inline AftConvConfig conv_config(int64_t window, int64_t heads, const AftProjections& projections) {
  AftConvConfig config = with_projections(AftConvConfig{}, projections);
  config.window = window;
  config.heads = heads;
  return config;
}

constexpr AftProjections plain{false, true}, biased{true, true}, published{true, false}, bare{false, false};

/// All variants, with every option in at least one of them.
inline std::vector<MixerCase> mixer_cases() {
  const auto factorised = PositionBias::factorised, dense = PositionBias::dense;
  return {{"simple", with_projections(AftSimpleConfig{}, plain), 0, true, true},
          {"simple, biases, no output projection", with_projections(AftSimpleConfig{}, published), 0, true, true},
          {"full", full_config(factorised, biased), 0, false, false},
          {"full dense, biases, no output projection", full_config(dense, published), 0, false, false},
          {"local", local_config(5, factorised, biased), 5, false, false},
          {"local window 1", local_config(1, factorised, plain), 1, false, false},
          {"local window 19", local_config(19, factorised, bare), 19, false, false},
          {"local dense, biases, no output projection", local_config(5, dense, published), 5, false, false},
          {"conv", conv_config(5, 5, biased), 5, true, false},
          {"conv one head", conv_config(6, 1, plain), 6, true, false},
          {"conv a head per channel", conv_config(2, width, bare), 2, true, false},
          {"conv window 19, biases, no output projection", conv_config(19, 10, published), 19, true, false}};
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
