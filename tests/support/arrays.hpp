// Arrays for tests.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/array/array.hpp"
#include "core/base/random.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// Draws from N(0, stddev^2), the same for the same seed.
inline Array random_array(const Shape& shape, uint64_t seed = 1, double stddev = 0.5) {
  RandomStream random(random_key(seed, "test array"));
  Array array(shape);
  real* const out = array.mutable_data();
  for (int64_t i = 0; i < array.size(); ++i) out[i] = static_cast<real>(stddev * random.normal());
  return array;
}

/// max |a - b| / max(1, max |b|); infinite when the shapes differ or a NaN stands on one side only.
inline double difference(const Array& a, const Array& b) {
  if (a.shape() != b.shape()) return INFINITY;
  double worst = 0, largest = 1;
  for (int64_t i = 0; i < a.size(); ++i) {
    const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (!std::isfinite(x) || !std::isfinite(y)) return INFINITY;
    worst = std::max(worst, std::fabs(x - y));
    largest = std::max(largest, std::fabs(y));
  }
  return worst / largest;
}

inline double root_mean_square(const Array& x) {
  double sum = 0;
  for (int64_t i = 0; i < x.size(); ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return std::sqrt(sum / static_cast<double>(x.size()));
}

/// A mask: 1 where x is above 0, else 0.
inline Array above_zero(const Array& x) {
  Array mask(x.shape());
  for (int64_t i = 0; i < x.size(); ++i) mask.mutable_data()[i] = x[i] > 0 ? real{1} : real{0};
  return mask;
}

/// Bit for bit.
inline bool identical(const Array& a, const Array& b) {
  return a.shape() == b.shape() && std::equal(a.data(), a.data() + a.size(), b.data());
}

}  // namespace capstan::CAPSTAN_PRECISION
