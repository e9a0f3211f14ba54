#include "core/kernels/dropout.hpp"

#include <algorithm>

#include "core/kernels/philox.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace kernels {
namespace {

/// words[4 j + w] = word w at the counter (example, position, first + j, step).
void row_words(uint32_t* words, const DropoutRow& row, uint32_t first) {
  PhiloxBlock block;
  auto& [c0, c1, c2, c3] = block.word;
  for (uint32_t j = 0; j < philox_counters; ++j)
    c0[j] = row.example, c1[j] = row.position, c2[j] = first + j, c3[j] = row.step;
  philox_rounds(block, row.key[0], row.key[1]);
  for (int64_t j = 0; j < philox_counters; ++j)
    words[4 * j] = c0[j], words[4 * j + 1] = c1[j], words[4 * j + 2] = c2[j], words[4 * j + 3] = c3[j];
}

}  // namespace

void dropout_row(real* out, const real* in, int64_t count, const DropoutRow& row, uint32_t threshold, real scale) {
  constexpr int64_t block_words = 4 * philox_counters;
  uint32_t words[block_words];
  for (int64_t first = 0; first < count; first += block_words) {
    row_words(words, row, static_cast<uint32_t>(first / 4));
    const int64_t width = std::min(block_words, count - first);
    for (int64_t i = 0; i < width; ++i) out[first + i] = words[i] >= threshold ? scale * in[first + i] : 0;
  }
}

}  // namespace kernels
}  // namespace capstan::CAPSTAN_PRECISION
