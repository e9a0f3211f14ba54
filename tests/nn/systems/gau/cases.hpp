// Configurations of GAU for the tests of nn/.
#pragma once

#include <string>
#include <vector>

#include "tests/nn/mixer/mixer_suite.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

inline GauConfig gau_config(AttentionKernel kernel, LogitForm logits, Normaliser normaliser) {
  GauConfig config;
  config.expansion = 1.9;  // 95 hidden features
  config.key_dim = 10;
  config.paper_length = 60;
  config.kernel = kernel;
  config.logits = logits;
  config.normaliser = normaliser;
  return config;
}

/// Every kernel with every form of logits and normaliser that exists,
/// every position bias and rotary form in several of them.
inline std::vector<MixerCase> gau_cases() {
  const std::vector<RotaryConfig> turns{
      {true, 100, RotaryPairs::halves}, {false}, {true, 10000, RotaryPairs::interleaved}};
  std::vector<MixerCase> cases;
  for (const auto& kernel : enum_names(AttentionKernel{})) {
    for (const auto& logits : enum_names(LogitForm{})) {
      for (const auto& normaliser : enum_names(Normaliser{})) {
        GauConfig config = gau_config(kernel.value, logits.value, normaliser.value);
        if (kernel_problem(config) != nullptr) continue;
        const auto biases = enum_names(RelativeBiasKind{});
        const auto& bias = biases[cases.size() % biases.size()];
        config.position_bias = bias.value;
        config.rotary = turns[cases.size() % turns.size()];
        config.bias = cases.size() % 2 == 0;
        cases.push_back(
            {std::string("gau ") + kernel.name + " " + logits.name + " " + normaliser.name + " " + bias.name, config, 0,
             bias.value != RelativeBiasKind::toeplitz, true});
      }
    }
  }
  return cases;
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
