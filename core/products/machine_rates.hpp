// Rates of arithmetic and memory, the two limits of a kernel's speed, measured in this process:
// tests/core/products/test_machine_rates.cpp.
#pragma once

#include <cstdint>

#include "core/base/real.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// Operations per second of a product of two square matrices of `size` rows, all threads. Two are computed and the
/// second is timed: the first one meets memory that was never touched.
double product_rate(int64_t size = 2048);

/// Bytes per second of a = b + s c over arrays of `count` elements, all threads, the median of five rounds; three
/// streams counted. Means something where the arrays are far larger than the caches.
double triad_rate(int64_t count);

}  // namespace capstan::CAPSTAN_PRECISION
