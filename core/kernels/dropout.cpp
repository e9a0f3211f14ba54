#include "core/kernels/dropout.hpp"

#include <algorithm>

#include "core/kernels/philox.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {
namespace {

constexpr int64_t block_words = 4 * philox_counters;

/// words[4 j + w] = word w of Philox at counter j of `block`.
void random_words(uint32_t* words, PhiloxBlock& block, const uint32_t (&key)[2]) {
  philox_rounds(block, key[0], key[1]);
  const auto& [c0, c1, c2, c3] = block.word;
  for (int64_t j = 0; j < philox_counters; ++j)
    words[4 * j] = c0[j], words[4 * j + 1] = c1[j], words[4 * j + 2] = c2[j], words[4 * j + 3] = c3[j];
}

/// words[4 j + w] = word w at the counter (example, position, first + j, step).
void row_words(uint32_t* words, const DropoutRow& row, uint32_t first) {
  PhiloxBlock block;
  auto& [c0, c1, c2, c3] = block.word;
  for (uint32_t j = 0; j < philox_counters; ++j)
    c0[j] = row.example, c1[j] = row.position, c2[j] = first + j, c3[j] = row.step;
  random_words(words, block, row.key);
}

void mask(real* out, const real* in, const uint32_t* words, int64_t count, uint32_t threshold, real scale) {
  for (int64_t i = 0; i < count; ++i) out[i] = words[i] >= threshold ? scale * in[i] : 0;
}

}  // namespace

void dropout_row(real* out, const real* in, int64_t count, const DropoutRow& row, uint32_t threshold, real scale) {
  uint32_t words[block_words];
  for (int64_t first = 0; first < count; first += block_words) {
    row_words(words, row, static_cast<uint32_t>(first / 4));
    mask(out + first, in + first, words, std::min(block_words, count - first), threshold, scale);
  }
}

void dropout_block(real* rows, const DropoutBlock& block, uint32_t threshold, real scale) {
  // Columns of one call of Philox, and keys that share a call where columns are few.
  const int64_t lane = block.first_query % 4, at_once = std::min(block.columns, block_words - 4),
                counters = (lane + at_once + 3) / 4, together = philox_counters / std::max<int64_t>(counters, 1);
  uint32_t words[block_words];
  PhiloxBlock random;
  auto& [c0, c1, c2, c3] = random.word;
  for (int64_t column = 0; column < block.columns; column += at_once) {
    const int64_t group = (block.first_query + column) / 4, width = std::min(at_once, block.columns - column);
    for (int64_t row = 0; row < block.keys; row += together) {
      for (int64_t j = 0; j < philox_counters; ++j) {
        c0[j] = block.example, c3[j] = block.step;
        c1[j] = block.first_key + static_cast<uint32_t>(row + j / counters);
        c2[j] = static_cast<uint32_t>(group + j % counters);
      }
      random_words(words, random, block.key);
      for (int64_t key = 0; key < std::min(together, block.keys - row); ++key) {
        real* const weights = rows + (row + key) * block.stride + column;
        mask(weights, weights, words + 4 * key * counters + lane, width, threshold, scale);
      }
    }
  }
}

}  // namespace capstan::CAPSTAN_PRECISION::kernels
