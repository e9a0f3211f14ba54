#include "core/kernels/dropout.hpp"

#include <algorithm>

CAPSTAN_BEGIN
namespace kernels {
namespace {

constexpr int64_t groups = 64;  // counters run side by side: the rounds become vector instructions

/// words[4 j + w] = word w of Philox 4x32-10 at the counter (example, position, first + j, step). Salmon et al. 2011.
void philox_groups(uint32_t* words, const DropoutRow& row, uint32_t first) {
  uint32_t c0[groups], c1[groups], c2[groups], c3[groups];
  for (uint32_t j = 0; j < groups; ++j) c0[j] = row.example, c1[j] = row.position, c2[j] = first + j, c3[j] = row.step;
  uint32_t k0 = row.key[0], k1 = row.key[1];
  for (int round = 0; round < 10; ++round) {
#pragma omp simd
    for (int64_t j = 0; j < groups; ++j) {
      const uint64_t p0 = uint64_t{0xD2511F53} * c0[j], p1 = uint64_t{0xCD9E8D57} * c2[j];
      c0[j] = static_cast<uint32_t>(p1 >> 32) ^ c1[j] ^ k0;
      c1[j] = static_cast<uint32_t>(p1);
      c2[j] = static_cast<uint32_t>(p0 >> 32) ^ c3[j] ^ k1;
      c3[j] = static_cast<uint32_t>(p0);
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int64_t j = 0; j < groups; ++j)
    words[4 * j] = c0[j], words[4 * j + 1] = c1[j], words[4 * j + 2] = c2[j], words[4 * j + 3] = c3[j];
}

}  // namespace

void dropout_row(real* out, const real* in, int64_t count, const DropoutRow& row, uint32_t threshold, real scale) {
  uint32_t words[4 * groups];
  for (int64_t first = 0; first < count; first += 4 * groups) {
    philox_groups(words, row, static_cast<uint32_t>(first / 4));
    const int64_t width = std::min(4 * groups, count - first);
    for (int64_t i = 0; i < width; ++i) out[first + i] = words[i] >= threshold ? scale * in[first + i] : 0;
  }
}

}  // namespace kernels
CAPSTAN_END
