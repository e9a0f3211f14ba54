#pragma once

#include "tests/nn/mixer/mixer_case.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

inline std::vector<MixerCase> samples(AttentionConfig config, int64_t heads) {
  config.heads = heads % 2 == 0 ? heads / 2 : heads;  // of even widths in all tests, since rotary turns pairs
  config.rotary.enabled = true;
  return {{"attention", config}};
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
