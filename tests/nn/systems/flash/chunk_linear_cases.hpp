// The cases the linear part of mixed chunk attention is tested on.
#pragma once

#include <fmt/core.h>

#include <string>
#include <vector>

#include "nn/systems/flash/chunk_linear.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

struct ChunkLinearCase {
  std::string name;
  ChunkLinearOptions options;
};

/// Both directions, all normalisers, chunks of these lengths.
inline std::vector<ChunkLinearCase> chunk_linear_cases(const std::vector<int64_t>& chunks) {
  std::vector<ChunkLinearCase> cases;
  for (const int64_t chunk : chunks) {
    for (const bool causal : {true, false}) {
      const std::string name = fmt::format("chunk {}, {}", chunk, causal ? "causal" : "bidirectional");
      cases.push_back({name + ", counted", {chunk, causal, ChunkNormaliser::counted}});
      cases.push_back({name + ", chunks", {chunk, causal, ChunkNormaliser::chunks}});
    }
  }
  return cases;
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
