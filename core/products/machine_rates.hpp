// The two limits that kernels are judged by, measured in the process that is judged.
#pragma once

#include <cstdint>

#include "core/base/real.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// Operations per second of a product of two square matrices, all threads; the second one, as the first touches the
/// memory, which is not the pool's.
double product_rate(int64_t size = 2048);

/// Bytes per second of a = b + s c over arrays of `count` elements, all threads, the median of five rounds; three
/// streams counted. Means something where the arrays are far larger than the caches.
double triad_rate(int64_t count);

}  // namespace capstan::CAPSTAN_PRECISION
