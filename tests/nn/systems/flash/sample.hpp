#pragma once

#include "tests/nn/mixer/mixer_case.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

inline std::vector<MixerCase> samples(FlashConfig config, int64_t) {
  config.key_dim = 8;
  config.chunk = 5;
  MixerCase sample{"flash", config, config.chunk};
  sample.wiring = Wiring::gated_units;
  return {sample};
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
