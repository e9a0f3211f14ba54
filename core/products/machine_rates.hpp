// The two limits that kernels are judged by, measured in the process that is judged.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/real.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// Times products of two square matrices, all threads. Its memory is its own, not the pool's.
class ProductRate {
 public:
  explicit ProductRate(int64_t size = 2048);
  /// Operations per second of one product.
  double measure();

 private:
  int64_t size_;
  std::vector<real> a_, b_, c_;
};

/// Bytes per second of a = b + s c over arrays of `count` elements, all threads, the median of five rounds; three
/// streams counted. Means something where the arrays are far larger than the caches.
double triad_rate(int64_t count);

}  // namespace capstan::CAPSTAN_PRECISION
