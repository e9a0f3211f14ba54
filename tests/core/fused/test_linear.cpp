#include <doctest/doctest.h>

#include "core/fused/linear.hpp"
#include "core/kernels/activation.hpp"
#include "core/ops/ops.hpp"
#include "tests/support/activations.hpp"
#include "tests/support/agreement.hpp"

using namespace capstan;

namespace {

Var composed_linear(const Var& x, const Var& weight, const Var& bias, Activation activation) {
  const Var product = matmul(x, weight, {Transpose::no, Transpose::yes});
  return testing::apply(activation, bias ? product + bias : product);
}

}  // namespace

TEST_CASE("linear equals its composition of primitives") {
  struct Sizes {
    const char* name;
    Shape x;
    int64_t out;
  };
  for (const Sizes& sizes : {Sizes{"ragged", {3, 5, 33}, 35}, Sizes{"enough rows for two threads", {1100, 17}, 33},
                             Sizes{"one row, one output", {1, 4}, 1}}) {
    for (const auto& activation : enum_names(Activation{})) {
      const std::string name = std::string(sizes.name) + " " + activation.name;
      const Shape weight{sizes.out, sizes.x[-1]};
      testing::check_agreement(
          name + " with bias", [&](const auto& v) { return linear(v[0], v[1], v[2], activation.value); },
          [&](const auto& v) { return composed_linear(v[0], v[1], v[2], activation.value); },
          {sizes.x, weight, Shape{sizes.out}});
      testing::check_agreement(
          name, [&](const auto& v) { return linear(v[0], v[1], Var(), activation.value); },
          [&](const auto& v) { return composed_linear(v[0], v[1], Var(), activation.value); }, {sizes.x, weight});
    }
  }
}

TEST_CASE("linear takes a vector as one row and no rows at all") {
  const Var weight(testing::random_normal({3, 4}, 1)), bias(testing::random_normal({3}, 2));
  CHECK(linear(Var(testing::random_normal({4}, 3)), weight, bias).shape() == Shape{3});
  CHECK(linear(Var(Array(Shape{0, 4})), weight, bias, Activation::gelu).shape() == Shape{0, 3});
}

TEST_CASE("linear gives gradients only where they are wanted") {
  const Var x(testing::random_normal({5, 4}, 1)), weight = Var::leaf(testing::random_normal({3, 4}, 2));
  TapeScope scope;
  const Var y = linear(x, weight, Var(testing::random_normal({3}, 3)), Activation::silu);
  scope.tape().backward(std::vector<Var>{y}, {Array(y.shape(), real{1})});
  CHECK(weight.has_grad());
  CHECK_FALSE(x.has_grad());
}

TEST_CASE("linear names shapes that do not fit") {
  const Var x(Array(Shape{2, 4}, real{1})), weight(Array(Shape{3, 5}, real{1}));
  CHECK_THROWS_WITH_AS(linear(x, weight), "linear: x (2, 4) does not fit a weight (3, 5) (out, in)",
                       std::invalid_argument);
  const Var fitting(Array(Shape{3, 4}, real{1})), bias(Array(Shape{4}, real{1}));
  CHECK_THROWS_WITH_AS(linear(x, fitting, bias), "linear: the bias must be (3), got shape (4)", std::invalid_argument);
}

TEST_CASE("activations stay finite far out and keep their limits") {
  const std::vector<real> far{real(-1e4), real(-100), real(-20), 0, real(20), real(100), real(1e4)};
  const int64_t count = static_cast<int64_t>(far.size());
  const std::vector<real> ones(far.size(), real{1});
  for (const auto& activation : enum_names(Activation{})) {
    INFO(activation.name);
    std::vector<real> y(far.size()), again(far.size()), slope(far.size());
    CAPSTAN_PRECISION::kernels::activation_forward({activation.value, 1, count}, far.data(), nullptr, y.data());
    CAPSTAN_PRECISION::kernels::activation_backward({activation.value, 1, count}, far.data(), nullptr, ones.data(),
                                                    slope.data(), again.data(), {});
    CHECK(y == again);
    for (size_t i = 0; i < far.size(); ++i) {
      CHECK(std::isfinite(y[i]));
      CHECK(std::isfinite(slope[i]));
    }
    if (activation.value == Activation::gelu || activation.value == Activation::silu) {
      CHECK(y.front() == 0);
      CHECK(slope.front() == 0);
      CHECK(y.back() == far.back());
      CHECK(slope.back() == 1);
    }
  }
}

TEST_CASE("gelu and its slope are exact, far into the tail") {
  for (double x = -12; x <= 12; x += 0.0037) {
    const real at = static_cast<real>(x), one = 1;
    real y = 0, slope = 0;
    CAPSTAN_PRECISION::kernels::activation_backward({Activation::gelu, 1, 1}, &at, nullptr, &one, &slope, &y, {});
    const double a = double{at}, phi = std::erfc(-a / std::sqrt(2.0)) / 2;
    const double density = std::exp(-a * a / 2) / std::sqrt(2 * std::acos(-1.0));
    // Rounding x^2 / 2 costs the float exponential x^2 / 2 units; double uses 1 + erf, exact to its absolute rounding.
    const double unit = sizeof(real) == 8 ? 2e-14 : 4e-7 * (1 + a * a / 4);
    const double relative = sizeof(real) == 8 ? 1 : phi;
    INFO("x = " << a);
    CHECK(std::abs(double{y} - a * phi) <= unit * std::abs(a) * relative + 1e-37);
    CHECK(std::abs(double{slope} - (phi + a * density)) <= unit * (relative + (1 + std::abs(a)) * density) + 1e-37);
  }
}

TEST_CASE("a NaN goes through every activation") {
  const real nan = std::numeric_limits<real>::quiet_NaN();
  for (const auto& activation : enum_names(Activation{})) {
    INFO(activation.name);
    real y = 0;
    CAPSTAN_PRECISION::kernels::activation_forward({activation.value, 1, 1}, &nan, nullptr, &y);
    CHECK(std::isnan(y));
  }
}
