#pragma once

#include "tests/nn/mixer/mixer_case.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

inline std::vector<MixerCase> samples(AttentionConfig config, int64_t heads) {
  config.heads = heads;
  config.rotary.enabled = true;
  return {{"attention", config}};
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
