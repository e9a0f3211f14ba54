#include <doctest/doctest.h>

#include <stdexcept>

#include "core/fused/norm.hpp"
#include "core/ops/ops.hpp"
#include "tests/support/agreement.hpp"

using namespace capstan;

namespace {

Var composed_rms(const Var& x, double eps) { return x / sqrt(mean(square(x), {-1}, keep_dims) + eps); }

Var composed_layer(const Var& x, double eps) { return composed_rms(x - mean(x, {-1}, keep_dims), eps); }

}  // namespace

TEST_CASE("norms equal their compositions of primitives") {
  for (const Shape& x : {Shape{3, 4, 35}, Shape{1100, 33}, Shape{1, 3}, Shape{2, 64}}) {
    INFO(to_string(x));
    const Shape row{x[-1]};
    testing::check_agreement(
        "layer_norm", [](const auto& v) { return layer_norm(v[0], v[1], v[2], 1e-3); },
        [](const auto& v) { return composed_layer(v[0], 1e-3) * v[1] + v[2]; }, {x, row, row});
    testing::check_agreement(
        "layer_norm, gain only", [](const auto& v) { return layer_norm(v[0], v[1], Var(), 1e-3); },
        [](const auto& v) { return composed_layer(v[0], 1e-3) * v[1]; }, {x, row});
    testing::check_agreement(
        "layer_norm, bias only", [](const auto& v) { return layer_norm(v[0], Var(), v[1], 1e-3); },
        [](const auto& v) { return composed_layer(v[0], 1e-3) + v[1]; }, {x, row});
    testing::check_agreement(
        "layer_norm, bare", [](const auto& v) { return layer_norm(v[0], Var(), Var(), 1e-3); },
        [](const auto& v) { return composed_layer(v[0], 1e-3); }, {x});
    testing::check_agreement(
        "rms_norm", [](const auto& v) { return rms_norm(v[0], v[1], 1e-3); },
        [](const auto& v) { return composed_rms(v[0], 1e-3) * v[1]; }, {x, row});
    testing::check_agreement(
        "rms_norm, bare", [](const auto& v) { return rms_norm(v[0], Var(), 1e-3); },
        [](const auto& v) { return composed_rms(v[0], 1e-3); }, {x});
    for (const Shape& gain : {Shape{}, Shape{1}})
      testing::check_agreement(
          "scale_norm", [](const auto& v) { return scale_norm(v[0], v[1], 1e-3); },
          [](const auto& v) { return composed_rms(v[0], 1e-3) * v[1]; }, {x, gain});
  }
}

TEST_CASE("norms of constant and of huge rows are finite, and a constant row is centred to nothing") {
  const int64_t columns = 37;
  std::vector<real> rows;
  for (const double value : {0.0, 1.0 / 3, 1e4 / 3, -1e4})
    for (int64_t i = 0; i < columns; ++i) rows.push_back(real(value));
  for (int64_t i = 0; i < columns; ++i) rows.push_back(i % 2 == 0 ? real(1e4) : real(-1e4));
  const Array input(Shape{5, columns}, rows), gain = testing::random_normal({columns}, 1),
                                              bias = testing::random_normal({columns}, 2);

  const testing::Run layer =
      testing::run([](const auto& v) { return layer_norm(v[0], v[1], v[2]); }, {input, gain, bias}, false);
  for (int64_t i = 0; i < 4 * columns; ++i) CHECK(layer.value[i] == bias[i % columns]);
  const testing::Run rms = testing::run([](const auto& v) { return rms_norm(v[0], v[1]); }, {input, gain}, false);
  const testing::Run scale =
      testing::run([](const auto& v) { return scale_norm(v[0], v[1]); }, {input, Array::scalar(real{1})}, false);
  for (const testing::Run* run : {&layer, &rms, &scale}) {
    for (const real value : run->value.to_vector()) CHECK(std::isfinite(value));
    for (const Array& grad : run->grads)
      for (const real value : grad.to_vector()) CHECK(std::isfinite(value));
  }
}

TEST_CASE("layer_norm keeps its precision far from zero") {
  const int64_t columns = 257;
  const Array small = testing::random_normal({1, columns}, 5, 1);
  std::vector<real> shifted = small.to_vector();
  // Multiples of 1/64 plus 4096 are exact in float, so both rows have the same deviations.
  for (real& value : shifted) value = std::round(value * 64) / 64;
  const Array near(Shape{1, columns}, shifted);
  for (real& value : shifted) value += 4096;
  const Array far(Shape{1, columns}, shifted);
  CHECK(testing::distance(layer_norm(Var(far)).value(), layer_norm(Var(near)).value()) <= 10 * testing::tolerance);
}

TEST_CASE("norms name shapes that do not fit") {
  const auto ones = [](const Shape& shape) { return Var(Array(shape, real{1})); };
  CHECK_THROWS_WITH_AS(layer_norm(ones({2, 4}), ones({3})),
                       "layer_norm: gain and bias of x (2, 4) must be (4), got shape (3)", std::invalid_argument);
  CHECK_THROWS_AS(rms_norm(ones({}), Var()), std::invalid_argument);
  CHECK_THROWS_AS(rms_norm(ones({2, 0}), Var()), std::invalid_argument);
  CHECK_THROWS_AS(scale_norm(ones({2, 4}), ones({4})), std::invalid_argument);
  CHECK_THROWS_AS(layer_norm(ones({2, 4}), Var(), Var(), -1), std::invalid_argument);
}
