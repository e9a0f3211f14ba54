// Comparing tensors.
#pragma once

#include <cmath>

#include "core/autograd/var.hpp"
#include "core/base/random.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

/// Tolerance of "fused equals composed", relative to the tensor's largest entry.
constexpr double fused_tolerance = sizeof(real) == 4 ? 1e-5 : 1e-11;

/// max |a - b| / max |b|, or infinity when a number is not finite or the shapes differ; max |b| is at least `floor`.
inline double relative_error(const Array& a, const Array& b, double floor = 1e-30) {
  if (a.shape() != b.shape()) return INFINITY;
  double difference = 0, largest = floor;
  for (int64_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return INFINITY;
    difference = std::max(difference, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
  }
  return difference / largest;
}

/// N(0, stddev^2) numbers, the same for float and double builds.
inline Array normal_array(const Shape& shape, uint64_t seed, double stddev = 0.5) {
  RandomStream random({seed, 0});
  Array array(shape);
  for (int64_t i = 0; i < array.size(); ++i)
    array.mutable_data()[i] = static_cast<real>(static_cast<float>(stddev * random.normal()));
  return array;
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
