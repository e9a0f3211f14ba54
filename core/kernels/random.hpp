// Random numbers by counters (Philox): dropout, and normally distributed numbers.
#pragma once

#include <cstdint>

#include "core/base/real.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

/// What decides about one row: Philox key, and the counter words that do not change along the row.
struct DropoutRow {
  uint32_t key[2];
  uint32_t example, position, step;
};

/// out[c] = word >= threshold ? scale * in[c] : 0, where word is number c % 4 of Philox 4x32-10 at the counter
/// (example, position, c / 4, step). On the calling thread; out may be in.
void dropout_row(real* out, const real* in, int64_t count, const DropoutRow& row, uint32_t threshold, real scale);

/// out[i] = stddev * the normal number that RandomStream(key, first + i) begins with, up to rounding in double; `key`
/// is philox_key of its key. On the calling thread.
void normal_numbers(real* out, int64_t count, uint64_t key, uint64_t first, double stddev);

}  // namespace capstan::CAPSTAN_PRECISION::kernels
