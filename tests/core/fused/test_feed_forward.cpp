#include <doctest/doctest.h>

#include "core/fused/feed_forward.hpp"
#include "core/kernels/activation.hpp"
#include "core/machine/pool.hpp"
#include "core/ops/ops.hpp"
#include "tests/support/activations.hpp"
#include "tests/support/agreement.hpp"

using namespace capstan;

namespace {

Var affine(const Var& x, const Var& weight, const Var& bias) {
  const Var product = matmul(x, weight, {Transpose::no, Transpose::yes});
  return bias ? product + bias : product;
}

Var composed(bool gated, const Var& x, const Var& up, const Var& up_bias, const Var& down, const Var& down_bias,
             Activation act) {
  const Var raw = affine(x, up, up_bias);
  if (!gated) return affine(testing::apply(act, raw), down, down_bias);
  const int64_t width = up.dim(0) / 2;
  return affine(testing::apply(act, slice(raw, -1, 0, width)) * slice(raw, -1, width, 2 * width), down, down_bias);
}

Var fused(bool gated, const Var& x, const Var& up, const Var& up_bias, const Var& down, const Var& down_bias,
          Activation act) {
  return gated ? gated_feed_forward(x, up, up_bias, down, down_bias, act)
               : feed_forward(x, up, up_bias, down, down_bias, act);
}

}  // namespace

TEST_CASE("feed-forward equals its composition of primitives, plain and gated") {
  struct Sizes {
    const char* name;
    Shape x;
    int64_t width, out;
  };
  for (const Sizes& sizes : {Sizes{"ragged", {2, 7, 5}, 33, 6}, Sizes{"enough rows for two threads", {1050, 3}, 33, 5},
                             Sizes{"rows of two strips", {8200, 3}, 7, 5}}) {
    for (const bool gated : {false, true}) {
      const Shape up{gated ? 2 * sizes.width : sizes.width, sizes.x[-1]}, down{sizes.out, sizes.width};
      for (const auto& act : enum_names(Activation{})) {
        const std::string name = std::string(sizes.name) + (gated ? " gated " : " ") + act.name;
        testing::check_agreement(
            name + " with biases", [&](const auto& v) { return fused(gated, v[0], v[1], v[2], v[3], v[4], act.value); },
            [&](const auto& v) { return composed(gated, v[0], v[1], v[2], v[3], v[4], act.value); },
            {sizes.x, up, Shape{up[0]}, down, Shape{down[0]}});
        testing::check_agreement(
            name, [&](const auto& v) { return fused(gated, v[0], v[1], Var(), v[2], Var(), act.value); },
            [&](const auto& v) { return composed(gated, v[0], v[1], Var(), v[2], Var(), act.value); },
            {sizes.x, up, down});
      }
    }
  }
}

TEST_CASE("feed-forward of no rows has gradients of zero") {
  for (const bool gated : {false, true}) {
    const std::vector<Shape> shapes{{gated ? 16 : 8, 3}, {gated ? 16 : 8}, {2, 8}, {2}};
    std::vector<Var> leaves;
    for (const Shape& shape : shapes) leaves.push_back(Var::leaf(Array(shape, real{1})));
    TapeScope scope;
    const Var y = fused(gated, Var(Array(Shape{0, 3})), leaves[0], leaves[1], leaves[2], leaves[3], Activation::gelu);
    scope.tape().backward(std::vector<Var>{y}, {Array(y.shape())});
    for (const Var& leaf : leaves)
      for (int64_t i = 0; i < leaf.size(); ++i) CHECK(leaf.grad()[i] == 0);
  }
}

TEST_CASE("feed-forward keeps the raw pre-activation only, and overwrites it on the way back") {
  const int64_t rows = 512, dim = 8, width = 256;
  const size_t hidden = static_cast<size_t>(rows * width) * sizeof(real);
  const Var x = Var::leaf(testing::random_normal({rows, dim}, 1)),
            up = Var::leaf(testing::random_normal({width, dim}, 2)),
            down = Var::leaf(testing::random_normal({dim, width}, 3));
  TapeScope scope;
  const size_t before = pool::stats().bytes_in_use;
  const Var y = feed_forward(x, up, Var(), down, Var(), Activation::gelu);
  CHECK(pool::stats().bytes_in_use - before < hidden + hidden / 2);
  pool::reset_peak();
  scope.tape().backward(std::vector<Var>{y}, {Array(y.shape(), real{1})});
  CHECK(pool::stats().peak_in_use - before < 2 * hidden + hidden / 2);
}

TEST_CASE("feed-forward names shapes that do not fit") {
  const auto ones = [](const Shape& shape) { return Var(Array(shape, real{1})); };
  CHECK_THROWS_AS(feed_forward(ones({2, 4}), ones({6, 4}), Var(), ones({4, 5}), Var(), Activation::relu),
                  std::invalid_argument);
  CHECK_THROWS_AS(feed_forward(ones({2, 4}), ones({6, 4}), ones({5}), ones({4, 6}), Var(), Activation::relu),
                  std::invalid_argument);
  CHECK_THROWS_WITH_AS(gated_feed_forward(ones({2, 4}), ones({5, 4}), Var(), ones({4, 2}), Var(), Activation::silu),
                       "gated_feed_forward: the up weight (5, 4) must have an even number of rows, gate and value",
                       std::invalid_argument);
}
