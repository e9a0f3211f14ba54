// Configurations of FLASH for the tests of nn/.
#pragma once

#include <fmt/core.h>

#include <vector>

#include "tests/nn/mixer/mixer_suite.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

/// 95 hidden features, 10 of the keys.
inline FlashConfig flash_config(int64_t chunk) {
  FlashConfig config;
  config.expansion = 1.9;
  config.key_dim = 10;
  config.chunk = chunk;
  return config;
}

/// Every kernel with every form of logits and normaliser that exists; position biases, rotary forms, chunks and the
/// parts that are on take turns.
inline std::vector<MixerCase> flash_cases() {
  const std::vector<RotaryConfig> turns{
      {true, 100, RotaryPairs::halves}, {false}, {true, 10000, RotaryPairs::interleaved}};
  const std::vector<std::pair<bool, bool>> parts{
      {true, true}, {true, true}, {false, true}, {true, true}, {true, false}};
  const std::vector<int64_t> chunks{13, 48, 1, 16};
  const auto biases = enum_names(RelativeBiasKind{});
  std::vector<MixerCase> cases;
  for (size_t round = 0; round < 2; ++round) {
    for (const auto& kernel : enum_names(AttentionKernel{})) {
      for (const auto& logits : enum_names(LogitForm{})) {
        for (const auto& normaliser : enum_names(Normaliser{})) {
          const size_t index = cases.size();
          FlashConfig config = flash_config(chunks[(index + round) % chunks.size()]);
          config.kernel = kernel.value;
          config.logits = logits.value;
          config.normaliser = normaliser.value;
          if (kernel_problem(config) != nullptr) continue;
          const auto& bias = biases[(index + round) % biases.size()];
          config.position_bias = bias.value;
          config.rotary = turns[index % turns.size()];
          config.bias = index % 2 == 0;
          std::tie(config.local, config.global) = parts[index % parts.size()];
          if (!config.local)
            config.chunk = std::min<int64_t>(config.chunk, 16);  // more than one chunk, or nothing mixes
          cases.push_back(
              {fmt::format("flash {} {} {} {}, chunk {}{}{}", kernel.name, logits.name, normaliser.name, bias.name,
                           config.chunk, config.local ? "" : ", global only", config.global ? "" : ", local only"),
               config, config.chunk});
        }
      }
    }
  }
  return cases;
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
