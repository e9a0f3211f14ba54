// Values of ops against the formulas that define them, written with xtensor and xtensor-blas as the papers have them,
// in double.
#include <doctest/doctest.h>

#include "core/fused/loss.hpp"
#include "core/fused/norm.hpp"
#include "core/ops/ops.hpp"
#include "tests/support/formulas_xt.hpp"

using namespace capstan;
using namespace capstan::testing;

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

TEST_CASE("softmax, with and without a mask") {
  const Array x = random_array({7, 37}, 1, 2);
  const Matrix y = softmax_of(matrix(x));
  CHECK(difference(softmax(Var(x)).value(), make_array(y)) < formula_tolerance);
  // A mask leaves elements out of the sum.
  const Array mask = above_zero(random_array({7, 37}, 2));
  const Matrix visible = matrix(mask), e = visible * xt::exp(matrix(x));
  const Vector sums = xt::sum(e, {1}, now);
  const Matrix masked = e / column(sums);
  CHECK(difference(softmax(Var(x), mask).value(), make_array(masked)) < formula_tolerance);
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
