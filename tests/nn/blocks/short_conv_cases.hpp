// Mixers with a short convolution in front.
#pragma once

#include <vector>

#include "tests/nn/mixer/mixer_suite.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace testing {

/// One of each kind: a scan, a table of positions, chunks, a product with all tokens; one tap to more than a window.
inline std::vector<MixerCase> short_conv_cases() {
  AftFullConfig full;
  full.rank = 3;
  FlashConfig flash;
  flash.key_dim = 8;
  flash.chunk = 7;
  AttentionConfig attention;
  attention.heads = 5;
  std::vector<MixerCase> cases = {{"aft-simple", AftSimpleConfig{}},
                                  {"aft-full", full, 0, /*any_length=*/false, /*exact_causality=*/false},
                                  {"flash", flash, 7},
                                  {"attention", attention}};
  const int64_t taps[] = {4, 2, 9, 1};
  for (size_t i = 0; i < cases.size(); ++i) {
    cases[i].short_conv = taps[i];
    cases[i].name += " after a convolution of " + std::to_string(taps[i]);
  }
  return cases;
}

}  // namespace testing
}  // namespace capstan::CAPSTAN_PRECISION
