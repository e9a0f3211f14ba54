// Initial values. A normal number takes one counter of the stream, so threads draw parts of a large parameter side by
// side; tests/nn/params/test_params.cpp holds that the numbers are those of RandomStream. Other draws take words in
// turn.
#include <cmath>

#include "core/base/error.hpp"
#include "core/kernels/random.hpp"
#include "core/machine/parallel.hpp"
#include "nn/params/scope.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace init {
namespace {

/// Draws with one counter per element, so that threads can start anywhere: drawing is most of making a small model.
Array normal_numbers(const Shape& shape, RandomStream& random, double stddev) {
  Array array(shape);
  parallel_for(array.size(), 4096, [&random, stddev, out = array.mutable_data()](int64_t begin, int64_t end) {
    const uint64_t first = random.counter() + static_cast<uint64_t>(begin);
    kernels::normal_numbers(out + begin, end - begin, philox_key(random.key()), first, stddev);
  });
  random = random.skip(static_cast<uint64_t>(array.size()));
  return array;
}

}  // namespace

Init constant(double value) {
  return [value](const Shape& shape, RandomStream&) { return Array(shape, static_cast<real>(value)); };
}

Init normal(double stddev) {
  return [stddev](const Shape& shape, RandomStream& random) { return normal_numbers(shape, random, stddev); };
}

Init uniform(double low, double high) {
  return [low, high](const Shape& shape, RandomStream& random) {
    Array array(shape);
    real* const out = array.mutable_data();
    for (int64_t i = 0; i < array.size(); ++i) out[i] = static_cast<real>(low + (high - low) * random.uniform());
    return array;
  };
}

Init lecun_normal(double gain) {
  return [gain](const Shape& shape, RandomStream& random) {
    check(shape.rank() == 2, "init: lecun_normal needs a weight of shape (out, in), got {}", shape);
    return normal(gain / std::sqrt(static_cast<double>(shape[1])))(shape, random);
  };
}

}  // namespace init
}  // namespace capstan::CAPSTAN_PRECISION
