#pragma once

#include "tests/nn/mixer/mixer_case.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

inline std::vector<MixerCase> samples(GauConfig config, int64_t) {
  config.key_dim = 8;
  MixerCase sample{"gau", config};
  sample.wiring = Wiring::gated_units;
  return {sample};
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
