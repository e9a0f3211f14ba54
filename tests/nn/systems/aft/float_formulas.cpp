#include <doctest/doctest.h>

#include "nn/systems/aft/op.hpp"
#include "tests/support/formulas_xt.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

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

}  // namespace capstan::CAPSTAN_PRECISION::testing
