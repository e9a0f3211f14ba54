#include <doctest/doctest.h>

#include <cmath>

#include "core/fused/rotary.hpp"
#include "core/ops/ops.hpp"
#include "tests/support/agreement.hpp"

using namespace capstan;

namespace {

/// x * cosines + partners of x * signed sines, with tables of x's own shape.
Var composed_rotary(const Var& x, const Ids& positions, const RotaryOptions& options) {
  const int64_t width = x.dim(-1), half = width / 2;
  std::vector<int32_t> partner;
  std::vector<real> cosine, sine;
  for (int64_t i = 0; i < width; ++i) {
    const bool interleaved = options.pairs == RotaryPairs::interleaved;
    partner.push_back(static_cast<int32_t>(interleaved ? i ^ 1 : (i + half) % width));
  }
  const int64_t heads = x.rank() == 4 ? x.dim(2) : 1;
  for (int64_t row = 0; row < positions.size(); ++row) {
    for (int64_t i = 0; i < heads * width; ++i) {
      const int64_t feature = i % width, other = partner[static_cast<size_t>(feature)];
      const int64_t pair = options.pairs == RotaryPairs::interleaved ? feature / 2 : std::min(feature, other);
      const double angle =
          positions[row] * std::pow(options.base, -2.0 * static_cast<double>(pair) / static_cast<double>(width));
      cosine.push_back(static_cast<real>(std::cos(angle)));
      sine.push_back(static_cast<real>(feature < other ? -std::sin(angle) : std::sin(angle)));
    }
  }
  const Var swapped = gather(x, Ids(Shape{width}, partner), x.rank() - 1);
  return x * Var(Array(x.shape(), cosine)) + swapped * Var(Array(x.shape(), sine));
}

Ids consecutive(int64_t batch, int64_t length, int32_t start = 0) {
  std::vector<int32_t> positions;
  for (int64_t i = 0; i < batch * length; ++i) positions.push_back(start + static_cast<int32_t>(i % length));
  return Ids(Shape{batch, length}, positions);
}

}  // namespace

TEST_CASE("rotary equals its composition of primitives") {
  const Ids ragged(Shape{2, 3}, std::vector<int32_t>{0, 5, 100000, 3, 0, 7});
  for (const RotaryPairs pairs : {RotaryPairs::interleaved, RotaryPairs::halves}) {
    const RotaryOptions options{10000, pairs};
    const auto compare = [&](const std::string& name, const Shape& x, const Ids& positions) {
      testing::check_agreement(
          name + " " + enum_name(pairs), [&](const auto& v) { return rotary(v[0], positions, options); },
          [&](const auto& v) { return composed_rotary(v[0], positions, options); }, {x});
    };
    compare("(B, T, D)", {2, 3, 66}, ragged);
    compare("two features", {2, 3, 2}, ragged);
    compare("(B, T, H, D)", {2, 3, 3, 38}, ragged);
    compare("enough rows for two threads", {4, 130, 2, 36}, consecutive(4, 130, 11));
  }
}

TEST_CASE("rotary makes products depend on the distance of positions only") {
  const Array q = testing::random_normal({1, 1, 64}, 1), k = testing::random_normal({1, 1, 64}, 2);
  const auto product_at = [&](int32_t q_position, int32_t k_position) {
    const Array a = rotary(Var(q), Ids(Shape{1, 1}, q_position)).value(),
                b = rotary(Var(k), Ids(Shape{1, 1}, k_position)).value();
    double sum = 0;
    for (int64_t i = 0; i < a.size(); ++i) sum += double{a[i]} * double{b[i]};
    return sum;
  };
  CHECK(product_at(5, 3) == doctest::Approx(product_at(10002, 10000)).epsilon(sizeof(real) == 8 ? 1e-10 : 1e-4));
  CHECK(product_at(5, 3) != doctest::Approx(product_at(5, 4)).epsilon(1e-4));
}

TEST_CASE("rotary leaves position 0 alone") {
  const Array x = testing::random_normal({1, 2, 6}, 1);
  const Array y = rotary(Var(x), consecutive(1, 2), {10000, RotaryPairs::halves}).value();
  for (int64_t i = 0; i < 6; ++i) CHECK(y[i] == x[i]);
  CHECK(y[6] != x[6]);
}

TEST_CASE("rotary, if nothing else is asked for, turns neighbouring features by p * 10000^(-2i/n)") {
  const Array x(Shape{1, 2, 4}, std::vector<real>{1, 0, 1, 0, 1, 0, 1, 0});
  const Array y = rotary(Var(x), consecutive(1, 2)).value();
  const double expected[] = {std::cos(1), std::sin(1), std::cos(0.01), std::sin(0.01)};
  for (int64_t i = 0; i < 4; ++i)
    CHECK(static_cast<double>(y[4 + i]) == doctest::Approx(expected[i]).scale(0).epsilon(1e-6));
}

TEST_CASE("rotary of the first heads leaves the others alone") {
  const Ids positions = consecutive(2, 3, 5);
  for (const RotaryPairs pairs : {RotaryPairs::interleaved, RotaryPairs::halves}) {
    testing::check_agreement(
        std::string("two of three heads, ") + enum_name(pairs),
        [&](const auto& v) {
          return rotary(v[0], positions, {10000, pairs, /*heads=*/2});
        },
        [&](const auto& v) {
          const Var turned = composed_rotary(slice(v[0], 2, 0, 2), positions, {10000, pairs});
          return concatenate({turned, slice(v[0], 2, 2, 3)}, 2);
        },
        {{2, 3, 3, 6}});
  }
}

TEST_CASE("rotary names what does not fit") {
  const Var x(Array(Shape{2, 3, 4}, real{1}));
  CHECK_THROWS_AS(rotary(Var(Array(Shape{2, 3, 5}, real{1})), consecutive(2, 3)), std::invalid_argument);  // odd width
  CHECK_THROWS_AS(rotary(x, consecutive(3, 2)), std::invalid_argument);       // positions of another shape
  CHECK_THROWS_AS(rotary(x, consecutive(2, 3), {0}), std::invalid_argument);  // base
  CHECK_THROWS_AS(rotary(x, consecutive(2, 3), {10000, RotaryPairs::halves, 2}), std::invalid_argument);  // heads
  CHECK_THROWS_AS(rotary(Var(Array(Shape{3, 4}, real{1})), consecutive(3, 4)), std::invalid_argument);
}
