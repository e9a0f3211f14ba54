// Values of the primitives against plain loops and xtensor, their limits, and what they refuse.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <tuple>

#include "core/array/array_xt.hpp"
#include "core/ops/ops.hpp"
#include "support/arrays.hpp"

using namespace capstan;

namespace {

constexpr double op_tolerance = sizeof(real) == 8 ? 1e-13 : 3e-6;
constexpr real infinity = std::numeric_limits<real>::infinity();
constexpr real not_a_number = std::numeric_limits<real>::quiet_NaN();

/// f of every element, in double.
Array mapped(const Array& x, const std::function<double(double)>& f) {
  Array y(x.shape());
  for (int64_t i = 0; i < x.size(); ++i) y.mutable_data()[i] = static_cast<real>(f(static_cast<double>(x[i])));
  return y;
}

bool all_equal(const Array& x, real value) {
  return std::all_of(x.data(), x.data() + x.size(), [value](real v) { return v == value; });
}

}  // namespace

TEST_CASE("element-wise ops broadcast as NumPy does") {
  const std::vector<std::pair<Shape, Shape>> shapes = {{{}, {}},
                                                       {{37}, {}},
                                                       {{2, 37}, {37}},
                                                       {{2, 37}, {2, 1}},
                                                       {{5, 1}, {37}},
                                                       {{2, 3, 1, 5}, {3, 4, 1}},
                                                       {{2, 1, 3, 1, 2, 1}, {1, 2, 1, 3, 1, 2}},
                                                       {{3, 0}, {3, 1}},
                                                       {{1000, 33}, {33}}};
  for (const auto& [sa, sb] : shapes) {
    const Array a = random_array(sa, 1), b = mapped(random_array(sb, 2), [](double v) { return v * v + 0.5; });
    const Var x(a), y(b);
    const xt::xarray<real> u = as_xtensor(a), w = as_xtensor(b);
    CHECK(difference((x + y).value(), make_array(u + w)) < op_tolerance);
    CHECK(difference((x - y).value(), make_array(u - w)) < op_tolerance);
    CHECK(difference((x * y).value(), make_array(u * w)) < op_tolerance);
    CHECK(difference((x / y).value(), make_array(u / w)) < op_tolerance);
    CHECK(identical(where(make_array(u >= w), x, y).value(), make_array(xt::maximum(u, w))));
  }
  CHECK_THROWS_WITH_AS(Var(random_array({2, 3})) + Var(random_array({2})),
                       "add: shapes (2, 3) and (2) do not broadcast", std::invalid_argument);
}

TEST_CASE("functions of one operand, from the smallest to the largest arguments") {
  Array x(Shape{77});
  for (int64_t i = 0; i < 77; ++i)
    x.mutable_data()[i] = static_cast<real>((i - 38) * (std::abs(i - 38) > 30 ? 12.5 : 0.3));
  const Var v(x);
  const auto phi = [](double u) { return 0.5 * std::erfc(-u / std::sqrt(2.0)); };
  const std::vector<std::pair<Var, std::function<double(double)>>> cases = {
      {neg(v), [](double u) { return -u; }},
      {square(v), [](double u) { return u * u; }},
      {tanh(v), [](double u) { return std::tanh(u); }},
      {sigmoid(v), [](double u) { return 1 / (1 + std::exp(-u)); }},
      {silu(v), [](double u) { return u / (1 + std::exp(-u)); }},
      {gelu(v), [phi](double u) { return u * phi(u); }},
      {relu(v), [](double u) { return std::max(u, 0.0); }},
      {squared_relu(v), [](double u) { return u > 0 ? u * u : 0; }},
      {erf(v), [](double u) { return std::erf(u); }},
      {exp(neg(square(v))), [](double u) { return std::exp(-u * u); }},
      {log(square(v) + 1), [](double u) { return std::log(u * u + 1); }},
      {sqrt(square(v) + 1), [](double u) { return std::sqrt(u * u + 1); }},
      {1.0 - v * 2 / 4, [](double u) { return 1 - u / 2; }}};
  for (size_t i = 0; i < cases.size(); ++i)
    CHECK_MESSAGE(difference(cases[i].first.value(), mapped(x, cases[i].second)) < op_tolerance, "function " << i);
}

TEST_CASE("no op hides a NaN, wherever it stands") {
  for (int64_t place = 0; place < 37; ++place) {
    Array x = random_array({37});
    x.mutable_data()[place] = not_a_number;
    const Var v(x);
    const std::vector<Var> results = {relu(v), squared_relu(v), exp(v), tanh(v), sigmoid(v), gelu(v)};
    for (const Var& result : results) CHECK(std::isnan(result.value()[place]));
    for (const Var& result : {sum(v), mean(v), sum(softmax(v))}) CHECK(std::isnan(result.value().item()));
  }
}

TEST_CASE("where takes nothing from what it does not choose") {
  const Var x = Var::leaf(Array(Shape{3}, {0, 4, infinity})), other = Var::leaf(Array(Shape{3}, {1, not_a_number, 3}));
  TapeScope scope;
  const Var y = where(Array(Shape{3}, {0, 1, 0}), x, other);
  CHECK(y.value().to_vector() == std::vector<real>{1, 4, 3});
  scope.backward(sum(y));
  CHECK(x.grad().to_vector() == std::vector<real>{0, 1, 0});
  CHECK(other.grad().to_vector() == std::vector<real>{1, 0, 1});
}

TEST_CASE("reductions over every set of axes") {
  const Array x = random_array({3, 4, 5, 6});
  const xt::xarray<double> values = as_xtensor(x);
  constexpr auto now = xt::evaluation_strategy::immediate;
  for (int set = 1; set < 16; ++set) {
    Axes axes;
    std::vector<size_t> dropped;
    for (int axis = 0; axis < 4; ++axis) {
      if (((set >> axis) & 1) == 0) continue;
      axes.push_back(axis - 4);
      dropped.push_back(static_cast<size_t>(axis));
    }
    const Var v(x);
    CHECK(difference(sum(v, axes).value(), make_array(xt::sum(values, dropped, now))) < op_tolerance);
    CHECK(difference(mean(v, axes).value(), make_array(xt::mean(values, dropped, now))) < op_tolerance);
    const xt::xarray<double> kept = xt::sum(values, dropped, now | xt::keep_dims);
    CHECK(difference(sum(v, axes, keep_dims).value(), make_array(kept)) < op_tolerance);
  }
  for (const auto& reduced : {sum(Var(x), {}), mean(Var(x), {})}) CHECK(identical(reduced.value(), x));
  const Var v(x);
  CHECK_THROWS_WITH_AS(sum(v, {4}), "sum: axis 4 is outside shape (3, 4, 5, 6)", std::invalid_argument);
  CHECK_THROWS_WITH_AS(mean(v, {1, -3}), "mean: axis -3 of shape (3, 4, 5, 6) is named twice", std::invalid_argument);
  CHECK(sum(Var(Array(Shape{0, 3})), {0}).value().to_vector() == std::vector<real>{0, 0, 0});
  CHECK_THROWS_AS(mean(Var(Array(Shape{0}))), std::invalid_argument);
  CHECK(mean(Var(Array(Shape{0, 3})), {1}).shape() == Shape{0});
}

TEST_CASE("long sums stay exact to a few units") {
  // A running float sum of a million tenths is off by 1 %; here at most 512 terms run, fewer per lane with SIMD.
  const Var x(Array(Shape{1 << 20, 2}, real(0.1)));
  const double term = static_cast<double>(real(0.1)), count = 1 << 20;
  CHECK(std::fabs(static_cast<double>(sum(x).value().item()) / (2 * count * term) - 1) < 1e-5);
  CHECK(std::fabs(static_cast<double>(sum(x, {0}).value()[1]) / (count * term) - 1) < 1e-5);
}

TEST_CASE("relu has the slope 0 where its input is 0") {
  const Var x = Var::leaf(Array(Shape{3}, {-1, 0, 2}));
  TapeScope scope;
  scope.backward(sum(relu(x)));
  CHECK(x.grad().to_vector() == std::vector<real>{0, 0, 1});
}

TEST_CASE("softmax at its limits") {
  const Array x(Shape{4, 3}, {1e4, 1e4, -1e4, -infinity, -infinity, -infinity, 5, -infinity, not_a_number, 1, 2, 3});
  const Array mask(Shape{4, 3}, {1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0});
  const Var v = Var::leaf(x);
  TapeScope scope;
  const Var y = softmax(v, mask);
  CHECK(y.value().to_vector() == std::vector<real>{0.5, 0.5, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0});
  scope.tape().backward({y}, {random_array({4, 3}, 1)});
  CHECK(all_equal(v.grad().view(3, {3}), 0));
  CHECK(v.grad()[8] == 0);
  CHECK(all_equal(v.grad().view(9, {3}), 0));
  for (int64_t i = 0; i < 9; ++i) CHECK(std::isfinite(v.grad()[i]));
  CHECK_THROWS_AS(softmax(v, Array(Shape{4})), std::invalid_argument);
  CHECK_THROWS_AS(softmax(v, Array(Shape{2, 4, 3})), std::invalid_argument);
}

TEST_CASE("a piece of split that is not used has the gradient 0, whatever was in the memory before") {
  const Var x = Var::leaf(random_array({16, 96}));
  {
    std::vector<Array> blocks;  // the pool hands them out again
    for (int i = 0; i < 8; ++i) blocks.emplace_back(x.shape(), std::numeric_limits<real>::quiet_NaN());
  }
  TapeScope scope;
  scope.backward(sum(split(x, 1, {32, 64})[1]));
  for (int64_t i = 0; i < x.value().size(); ++i) REQUIRE(x.grad()[i] == (i % 96 < 32 ? 0 : 1));
}

TEST_CASE("ops on shapes move elements to their places") {
  Array x(Shape{2, 3, 4});
  for (int64_t i = 0; i < 24; ++i) x.mutable_data()[i] = static_cast<real>(i);
  const Var v(x);
  const Array moved = transpose(v, {2, 0, 1}).value();
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < 3; ++j)
      for (int64_t k = 0; k < 4; ++k) CHECK(moved[(k * 2 + i) * 3 + j] == x[(i * 3 + j) * 4 + k]);
  const Array large = random_array({3, 50, 2, 70}, 2);
  const Array by_xtensor = make_array(xt::transpose(as_xtensor(large), {3, 0, 2, 1}));
  CHECK(identical(transpose(Var(large), {3, 0, 2, 1}).value(), by_xtensor));
  CHECK(slice(v, 2, 1, 3).value().to_vector()[2] == 5);
  CHECK(slice(v, 0, 1, 2).value().data() == x.data() + 12);  // shares the buffer
  CHECK(reshape(v, {-1, 6}).shape() == Shape{4, 6});
  CHECK(identical(concatenate(split(v, 1, {1, 0, 2}), 1).value(), x));
  CHECK(broadcast_to(Var(random_array({3, 1})), {2, 3, 4}).shape() == Shape{2, 3, 4});
  for (const std::vector<int64_t>& extents : {std::vector<int64_t>{5, -1}, {-1, -1}, {-2, 12}, {0, -1}})
    CHECK_THROWS_AS(reshape(v, extents), std::invalid_argument);
  for (const Axes& order : {Axes{0, 1}, Axes{0, 1, 1}}) CHECK_THROWS_AS(transpose(v, order), std::invalid_argument);
  for (const auto& [axis, begin, end] : {std::tuple{0, 1, 3}, {1, 2, 1}, {3, 0, 1}, {0, -1, 1}})
    CHECK_THROWS_AS(slice(v, axis, begin, end), std::invalid_argument);
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{1, 2}, {3, -1}})
    CHECK_THROWS_AS(split(v, 0, sizes), std::invalid_argument);
  CHECK_THROWS_AS(concatenate({}, 0), std::invalid_argument);
  CHECK_THROWS_AS(concatenate({v, transpose(v)}, 0), std::invalid_argument);
  CHECK_THROWS_AS(broadcast_to(v, {3, 4}), std::invalid_argument);
  CHECK_THROWS_AS(transpose(Var(Array(Shape{3}))), std::invalid_argument);
}

TEST_CASE("an index outside its range is named with its position") {
  const Var table(random_array({10, 3}));
  const std::vector<std::pair<int32_t, const char*>> cases = {{10, "embedding: id 10 at (1, 2) is outside [0, 10)"},
                                                              {-1, "embedding: id -1 at (1, 2) is outside [0, 10)"}};
  for (const auto& [id, message] : cases)
    CHECK_THROWS_WITH_AS(embedding(table, Ids(Shape{2, 3}, {0, 9, 3, 4, 5, id})), message, std::invalid_argument);
  CHECK_THROWS_AS(gather(table, Ids(Shape{1}, 3), 1), std::invalid_argument);
  CHECK_THROWS_AS(embedding(Var(random_array({10})), Ids(Shape{1}, 0)), std::invalid_argument);
  const Array taken = gather(table, Ids(Shape{2, 1}, {2, 0}), 1).value();
  CHECK(taken.shape() == Shape{10, 2, 1});
  CHECK(taken[2] == table.value()[5]);
}

TEST_CASE("the depthwise convolution is causal, starts from zeros and stays within documents") {
  const Array x = random_array({2, 6, 3}), kernel = random_array({3, 4}, 2);
  const Segments packed(Ids(Shape{2, 6}, {1, 1, 2, 2, 2, 0, 0, 3, 3, 3, 3, 3}));
  const Array simple = depthwise_causal_conv(Var(x), Var(kernel), Segments::full(2, 6)).value();
  const Array within = depthwise_causal_conv(Var(x), Var(kernel), packed).value();
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t t = 0; t < 6; ++t)
      for (int64_t d = 0; d < 3; ++d) {
        double expected = 0, expected_within = 0;
        for (int64_t k = 0; k < 4; ++k) {
          const int64_t from = t - 3 + k;
          if (from < 0) continue;
          const double term = static_cast<double>(kernel[d * 4 + k]) * static_cast<double>(x[(b * 6 + from) * 3 + d]);
          const int32_t document = packed.ids()[b * 6 + t];
          expected += term;
          if (document != 0 && packed.ids()[b * 6 + from] == document) expected_within += term;
        }
        CHECK(std::fabs(static_cast<double>(simple[(b * 6 + t) * 3 + d]) - expected) < 1e-6);
        CHECK(std::fabs(static_cast<double>(within[(b * 6 + t) * 3 + d]) - expected_within) < 1e-6);
      }
  CHECK_THROWS_AS(depthwise_causal_conv(Var(x), Var(random_array({4, 3})), packed), std::invalid_argument);
  CHECK_THROWS_AS(depthwise_causal_conv(Var(x), Var(kernel), Segments::full(2, 5)), std::invalid_argument);
}

TEST_CASE("matmul refuses shapes that do not fit") {
  const auto product = [](const Shape& a, const Shape& b) {
    return matmul(Var(random_array(a)), Var(random_array(b)));
  };
  CHECK_THROWS_WITH_AS(product({8, 16, 32}, {64, 32}), "matmul: inner sizes differ: (8, 16, 32) @ (64, 32)",
                       std::invalid_argument);
  CHECK_THROWS_AS(product({3}, {3, 2}), std::invalid_argument);
  CHECK_THROWS_AS(product({2, 4, 3}, {3, 3, 2}), std::invalid_argument);
  CHECK(product({0, 4, 3}, {3, 2}).shape() == Shape{0, 4, 2});
}
