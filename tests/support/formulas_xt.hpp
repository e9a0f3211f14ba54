// What formulas of papers are written with in tests: matrices of doubles of xtensor. For float builds only, because a
// file that includes it takes long to compile, and fused == composed is tested in both precisions.
#pragma once

#include <cmath>
#include <xtensor-blas/xlinalg.hpp>

#include "core/array/array_xt.hpp"
#include "tests/support/arrays.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

using Matrix = xt::xtensor<double, 2>;
using Vector = xt::xtensor<double, 1>;

constexpr double formula_tolerance = 3e-6;
constexpr auto now = xt::evaluation_strategy::immediate;

inline Matrix matrix(const Array& x) { return as_xtensor<2>(x); }
/// (rows) -> (rows, 1), to broadcast over columns.
inline Matrix column(const Vector& x) { return xt::view(x, xt::all(), xt::newaxis()); }

/// softmax(x)_ij = e^x_ij / sum_k e^x_ik
inline Matrix softmax_of(const Matrix& x) {
  const Matrix e = xt::exp(x);
  const Vector sums = xt::sum(e, {1}, now);
  return e / column(sums);
}

/// 0 where the key is not later than the query, else -infinity.
inline Matrix causal_mask(size_t length) {
  Matrix mask = xt::zeros<double>({length, length});
  for (size_t i = 0; i < length; ++i)
    for (size_t j = i + 1; j < length; ++j) mask(i, j) = -INFINITY;
  return mask;
}

inline Matrix sigmoid_of(const Matrix& x) { return 1 / (1 + xt::exp(-x)); }

}  // namespace capstan::CAPSTAN_PRECISION::testing
