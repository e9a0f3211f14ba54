#include <doctest/doctest.h>

#include "nn/systems/quadratic/op.hpp"
#include "tests/support/formulas_xt.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

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

}  // namespace capstan::CAPSTAN_PRECISION::testing
