#pragma once

#include "tests/nn/mixer/mixer_case.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

inline std::vector<MixerCase> samples(AftSimpleConfig config, int64_t) {
  config.bias = true;
  return {{"aft-simple", config}};
}

inline std::vector<MixerCase> samples(AftFullConfig config, int64_t) {
  config.rank = 3;
  AftFullConfig dense;
  dense.position_bias = PositionBias::dense;
  dense.output_projection = false;
  return {{"aft-full", config, 0, false, false}, {"aft-full dense", dense, 0, false, false}};
}

inline std::vector<MixerCase> samples(AftLocalConfig config, int64_t) {
  config.window = 5;
  config.rank = 3;
  AftLocalConfig dense = config;
  dense.position_bias = PositionBias::dense;
  dense.bias = true;
  return {{"aft-local", config, 5, false, false}, {"aft-local dense", dense, 5, false, false}};
}

inline std::vector<MixerCase> samples(AftConvConfig config, int64_t heads) {
  config.window = 5;
  config.heads = heads;
  return {{"aft-conv", config, 5, true, false}};
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
