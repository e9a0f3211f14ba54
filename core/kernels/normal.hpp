// Normally distributed random numbers, counter-based.
#pragma once

#include <cstdint>

#include "core/base/real.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

/// out[i] = stddev * the normal number that RandomStream(key, first + i) begins with, up to rounding in double; `key`
/// is philox_key of its key. On the calling thread.
void normal_numbers(real* out, int64_t count, uint64_t key, uint64_t first, double stddev);

}  // namespace capstan::CAPSTAN_PRECISION::kernels
