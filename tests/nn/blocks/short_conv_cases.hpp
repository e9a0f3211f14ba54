// Mixers with a short convolution in front.
#pragma once

#include <vector>

#include "tests/nn/mixer/mixer_suite.hpp"
#include "tests/nn/systems/samples.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

/// Every mixer, with one tap to more than a window.
inline std::vector<MixerCase> short_conv_cases() {
  std::vector<MixerCase> cases;
  const int64_t taps[] = {4, 2, 9, 1};
  for (MixerCase& c : mixer_samples(5)) {
    if (c.name != mixer_name(c.config)) continue;  // one of each
    c.short_conv = taps[cases.size() % 4];
    c.name += " after a convolution of " + std::to_string(c.short_conv);
    cases.push_back(c);
  }
  return cases;
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
