// Configurations of multi-head attention for the tests of nn/.
#pragma once

#include <string>
#include <vector>

#include "tests/nn/mixer/mixer_suite.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

/// All combinations of projections, from one head to many; without rotary positions and with both kinds of pairs.
inline std::vector<MixerCase> attention_cases() {
  struct Biases {
    const char* name;
    bool bias, output_projection;
  };
  std::vector<MixerCase> cases;
  for (const Biases& biases : {Biases{"plain", false, true}, Biases{"biases", true, true},
                               Biases{"biases, no output projection", true, false}, Biases{"bare", false, false}}) {
    for (const int64_t heads : {int64_t{1}, int64_t{5}, width}) {
      AttentionConfig config;
      config.heads = heads;
      config.bias = biases.bias;
      config.output_projection = biases.output_projection;
      const std::string name = "attention, " + std::to_string(heads) + " heads, " + biases.name;
      cases.push_back({name, config});
      if (heads == width) continue;  // of one feature each
      config.rotary.enabled = true;
      config.rotary.pairs = cases.size() % 4 < 2 ? RotaryPairs::halves : RotaryPairs::interleaved;
      config.rotary.base = 100;
      cases.push_back({name + ", rotary " + enum_name(config.rotary.pairs), config});
    }
  }
  return cases;
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
