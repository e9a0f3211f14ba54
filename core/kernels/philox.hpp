// Philox 4x32-10 (Salmon et al. 2011) on many counters side by side; core/base/random has it for one.
#pragma once

#include <cstdint>

#include "core/base/real.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

constexpr int64_t philox_counters = 64;

/// Counters, and after philox_rounds the random words in their places: word[w][j] of counter j.
struct PhiloxBlock {
  uint32_t word[4][philox_counters];
};

/// The ten rounds, side by side so that they become vector instructions.
inline void philox_rounds(PhiloxBlock& block, uint32_t key0, uint32_t key1) {
  uint32_t *const c0 = block.word[0], *const c1 = block.word[1], *const c2 = block.word[2], *const c3 = block.word[3];
  for (int round = 0; round < 10; ++round) {
#pragma omp simd
    for (int64_t j = 0; j < philox_counters; ++j) {
      const uint64_t p0 = uint64_t{0xD2511F53} * c0[j], p1 = uint64_t{0xCD9E8D57} * c2[j];
      c0[j] = static_cast<uint32_t>(p1 >> 32) ^ c1[j] ^ key0;
      c1[j] = static_cast<uint32_t>(p1);
      c2[j] = static_cast<uint32_t>(p0 >> 32) ^ c3[j] ^ key1;
      c3[j] = static_cast<uint32_t>(p0);
    }
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
}

}  // namespace capstan::CAPSTAN_PRECISION::kernels
