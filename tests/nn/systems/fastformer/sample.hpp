#pragma once

#include "tests/nn/mixer/mixer_case.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

inline std::vector<MixerCase> samples(FastformerConfig config, int64_t heads) {
  config.heads = heads;
  MixerCase sample{"fastformer", config};
  sample.wiring = Wiring::post_norm;
  return {sample};
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
