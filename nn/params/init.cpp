#include <cmath>
#include <xtensor-blas/xlinalg.hpp>

#include "core/array/array_xt.hpp"
#include "core/kernels/normal.hpp"
#include "core/machine/parallel.hpp"
#include "nn/params/scope.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace init {
namespace {

template <class Draw>
Array filled(const Shape& shape, const Draw& draw) {
  Array array(shape);
  real* const out = array.mutable_data();
  for (int64_t i = 0; i < array.size(); ++i) out[i] = static_cast<real>(draw());
  return array;
}

/// One counter per element, so that threads can start anywhere: drawing takes most of the time of making a small model.
Array normal_numbers(const Shape& shape, RandomStream& random, double stddev) {
  Array array(shape);
  parallel_for(array.size(), 4096, [&random, stddev, out = array.mutable_data()](int64_t begin, int64_t end) {
    const uint64_t first = random.counter() + static_cast<uint64_t>(begin);
    kernels::normal_numbers(out + begin, end - begin, philox_key(random.key()), first, stddev);
  });
  random = random.skip(static_cast<uint64_t>(array.size()));
  return array;
}

void check_matrix(const Shape& shape, const char* name) {
  check(shape.rank() == 2, "init: {} needs a weight of shape (out, in), got {}", name, shape);
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
    return filled(shape, [&] { return low + (high - low) * random.uniform(); });
  };
}

Init lecun_normal(double gain) {
  return [gain](const Shape& shape, RandomStream& random) {
    check_matrix(shape, "lecun_normal");
    return normal(gain / std::sqrt(static_cast<double>(shape[1])))(shape, random);
  };
}

Init glorot_uniform() {
  return [](const Shape& shape, RandomStream& random) {
    check_matrix(shape, "glorot_uniform");
    const double limit = std::sqrt(6.0 / static_cast<double>(shape[0] + shape[1]));
    return uniform(-limit, limit)(shape, random);
  };
}

Init orthogonal(double gain) {
  return [gain](const Shape& shape, RandomStream& random) {
    check_matrix(shape, "orthogonal");
    const bool tall = shape[0] >= shape[1];
    const size_t rows = static_cast<size_t>(tall ? shape[0] : shape[1]),
                 columns = static_cast<size_t>(tall ? shape[1] : shape[0]);
    xt::xtensor<double, 2> gaussian({rows, columns});
    for (double& number : gaussian) number = random.normal();
    const auto [q, r] = xt::linalg::qr(gaussian);
    Array weight(shape);
    real* const out = weight.mutable_data();
    for (size_t row = 0; row < rows; ++row) {
      for (size_t column = 0; column < columns; ++column) {
        // The sign of r's diagonal makes the distribution uniform over orthogonal matrices (Mezzadri 2007).
        const double value = gain * q(row, column) * (r(column, column) < 0 ? -1 : 1);
        out[tall ? row * columns + column : column * rows + row] = static_cast<real>(value);
      }
    }
    return weight;
  };
}

}  // namespace init
}  // namespace capstan::CAPSTAN_PRECISION
