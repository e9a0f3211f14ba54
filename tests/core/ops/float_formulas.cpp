// Values of ops against the formulas that define them, written with xtensor and xtensor-blas as the papers have them,
// in double. In float builds only: this file takes 14 s of CPU to compile, and fused == composed is tested in both.
#include <doctest/doctest.h>

#include <cmath>
#include <xtensor-blas/xlinalg.hpp>

#include "core/array/array_xt.hpp"
#include "core/ops/loss.hpp"
#include "core/ops/norm.hpp"
#include "core/ops/ops.hpp"
#include "nn/systems/aft/op.hpp"
#include "nn/systems/quadratic/op.hpp"
#include "support/arrays.hpp"

using namespace capstan;

namespace {

using Matrix = xt::xtensor<double, 2>;
using Vector = xt::xtensor<double, 1>;

constexpr double formula_tolerance = 3e-6;
constexpr auto now = xt::evaluation_strategy::immediate;

Matrix matrix(const Array& x) { return as_xtensor<2>(x); }
/// (rows) -> (rows, 1), to broadcast over columns.
Matrix column(const Vector& x) { return xt::view(x, xt::all(), xt::newaxis()); }

/// softmax(x)_ij = e^x_ij / sum_k e^x_ik
Matrix softmax_of(const Matrix& x) {
  const Matrix e = xt::exp(x);
  const Vector sums = xt::sum(e, {1}, now);
  return e / column(sums);
}

/// 0 where the key is not later than the query, else -infinity.
Matrix causal_mask(size_t length) {
  Matrix mask = xt::zeros<double>({length, length});
  for (size_t i = 0; i < length; ++i)
    for (size_t j = i + 1; j < length; ++j) mask(i, j) = -INFINITY;
  return mask;
}

Matrix sigmoid_of(const Matrix& x) { return 1 / (1 + xt::exp(-x)); }

}  // namespace

TEST_CASE("matmul is the product of xtensor-blas, in every batch and for every transposition") {
  const auto no = Transpose::no, yes = Transpose::yes;
  for (const Transpose ta : {no, yes}) {
    for (const Transpose tb : {no, yes}) {
      const Array a = random_array(ta == no ? Shape{3, 17, 9} : Shape{3, 9, 17}, 1);
      const Array b = random_array(tb == no ? Shape{3, 9, 20} : Shape{3, 20, 9}, 2);
      const Array c = matmul(Var(a), Var(b), {ta, tb}).value();
      for (int64_t i = 0; i < 3; ++i) {
        const auto part = [i](const Array& x) { return x.rows(i, i + 1).reshape({x.dim(1), x.dim(2)}); };
        Matrix left = matrix(part(a)), right = matrix(part(b));
        if (ta == yes) left = Matrix(xt::transpose(left));
        if (tb == yes) right = Matrix(xt::transpose(right));
        CHECK(difference(part(c), make_array(xt::linalg::dot(left, right))) < formula_tolerance);
      }
    }
  }
}

TEST_CASE("softmax and its logarithm, with and without a mask") {
  const Array x = random_array({7, 37}, 1, 2);
  const Matrix y = softmax_of(matrix(x));
  CHECK(difference(softmax(Var(x)).value(), make_array(y)) < formula_tolerance);
  CHECK(difference(log_softmax(Var(x)).value(), make_array(xt::log(y))) < formula_tolerance);
  // A mask leaves elements out of the sum.
  const Array mask = mask_greater(random_array({7, 37}, 2), Array::scalar(0));
  const Matrix visible = matrix(mask), e = visible * xt::exp(matrix(x));
  const Vector sums = xt::sum(e, {1}, now);
  const Matrix masked = e / column(sums);
  CHECK(difference(softmax(Var(x), mask).value(), make_array(masked)) < formula_tolerance);
  const Matrix logs = xt::where(visible > 0, xt::log(masked + (1 - visible)), 0.0);
  CHECK(difference(log_softmax(Var(x), mask).value(), make_array(logs)) < formula_tolerance);
}

TEST_CASE("cumulative sums along every axis") {
  const Array x = random_array({3, 4, 5});
  const xt::xarray<double> values = as_xtensor(x);
  for (const int axis : {0, 1, 2})
    CHECK(difference(cumulative_sum(Var(x), axis).value(), make_array(xt::cumsum(values, axis))) < formula_tolerance);
}

TEST_CASE("norms: the deviation from the mean over the standard deviation, x over its root mean square") {
  const Array x = random_array({7, 35}, 1), gain = random_array({35}, 2), bias = random_array({35}, 3);
  const double eps = 1e-3;
  const Matrix v = matrix(x);
  const Vector g = as_xtensor<1>(gain), b = as_xtensor<1>(bias), mean = xt::mean(v, {1}, now);
  const Matrix centred = v - column(mean);
  const Vector variance = xt::mean(xt::square(centred), {1}, now), squares = xt::mean(xt::square(v), {1}, now);
  CHECK(difference(layer_norm(Var(x), Var(gain), Var(bias), eps).value(),
                   make_array(centred / xt::sqrt(column(variance) + eps) * g + b)) < formula_tolerance);
  CHECK(difference(rms_norm(Var(x), Var(gain), eps).value(), make_array(v / xt::sqrt(column(squares) + eps) * g)) <
        formula_tolerance);
}

TEST_CASE("cross-entropy: -log of the probability of the target, summed") {
  const Array x = random_array({11, 5}, 1), weight = random_array({9, 5}, 2), bias = random_array({9}, 3);
  const Ids targets(Shape{11}, {0, 8, 3, 3, -1, 5, 1, 7, -1, 2, 4});
  const Vector b = as_xtensor<1>(bias);
  const Matrix logits = xt::linalg::dot(matrix(x), xt::transpose(matrix(weight))) + b, p = softmax_of(logits);
  double loss = 0;
  for (size_t row = 0; row < 11; ++row) {
    const int32_t target = targets[static_cast<int64_t>(row)];
    if (target >= 0) loss -= std::log(p(row, static_cast<size_t>(target)));
  }
  const Array expected = Array::scalar(static_cast<real>(loss));
  CHECK(difference(linear_cross_entropy(Var(x), Var(weight), Var(bias), targets).sum.value(), expected) <
        formula_tolerance);
  CHECK(difference(softmax_cross_entropy(Var(make_array(logits)), targets).sum.value(), expected) < formula_tolerance);
}

// Vaswani et al. 2017, arXiv 1706.03762, equation 1: softmax(Q K^T / sqrt(d)) V.
TEST_CASE("attention of one head") {
  const int64_t length = 19, width = 6;
  const Array q = random_array({length, width}, 1, 1), k = random_array({length, width}, 2, 1),
              v = random_array({length, width}, 3, 1);
  for (const bool causal : {true, false}) {
    Matrix logits = xt::linalg::dot(matrix(q), xt::transpose(matrix(k))) / std::sqrt(static_cast<double>(width));
    if (causal) logits += causal_mask(static_cast<size_t>(length));
    AttentionOptions options;
    options.causal = causal;
    options.scale = 1 / std::sqrt(static_cast<double>(width));
    const auto one = [&](const Array& x) { return Var(x.reshape({1, length, width})); };
    const Array y = attention(one(q), one(k), one(v), Var(), Segments::full(1, length), options).value();
    CHECK(difference(y.reshape({length, width}), make_array(xt::linalg::dot(softmax_of(logits), matrix(v)))) <
          formula_tolerance);
  }
}

// Zhai et al. 2021, arXiv 2105.14103, equation 2: Y = sigmoid(Q) (e^w (e^K V)) / (e^w e^K).
TEST_CASE("AFT-full with a dense bias") {
  const int64_t length = 19, width = 6;
  const Array qkv = random_array({length, 3 * width}, 1, 1), w = random_array({length, length}, 2, 1);
  const Matrix packed = matrix(qkv);
  const auto part = [&](size_t index) {
    const auto columns = static_cast<size_t>(width);
    return Matrix(xt::view(packed, xt::all(), xt::range(index * columns, (index + 1) * columns)));
  };
  const Matrix q = part(0), e = xt::exp(part(1)), ev = e * part(2);
  for (const bool causal : {true, false}) {
    Matrix bias = matrix(w);
    if (causal) bias += causal_mask(static_cast<size_t>(length));
    const Matrix weights = xt::exp(bias);
    const Matrix y = sigmoid_of(q) * xt::linalg::dot(weights, ev) / xt::linalg::dot(weights, e);
    const Array fused =
        aft_dense(Var(qkv.reshape({1, length, 3 * width})), Var(w), Segments::full(1, length), causal, 0).value();
    CHECK(difference(fused.reshape({length, width}), make_array(y)) < formula_tolerance);
  }
}
