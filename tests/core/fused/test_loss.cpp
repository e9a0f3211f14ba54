#include <doctest/doctest.h>

#include <limits>

#include "core/fused/linear.hpp"
#include "core/fused/loss.hpp"
#include "core/machine/pool.hpp"
#include "core/ops/ops.hpp"
#include "tests/support/agreement.hpp"

using namespace capstan;

namespace {

/// Targets of N rows among V classes; every third row is ignored.
Ids some_targets(int64_t rows, int64_t classes, int32_t ignored = -1) {
  std::vector<int32_t> targets;
  for (int64_t row = 0; row < rows; ++row)
    targets.push_back(row % 3 == 1 ? ignored : static_cast<int32_t>((row * 7 + 2) % classes));
  return Ids(Shape{rows}, targets);
}

/// -sum of target distribution * log softmax.
Var composed_loss(const Var& logits, const Ids& targets, const CrossEntropyOptions& options) {
  const int64_t rows = logits.dim(0), classes = logits.dim(1);
  std::vector<real> distribution(static_cast<size_t>(rows * classes));
  for (int64_t row = 0; row < rows; ++row) {
    if (targets[row] == options.ignored) continue;
    for (int64_t j = 0; j < classes; ++j)
      distribution[static_cast<size_t>(row * classes + j)] =
          (options.class_weights.empty() ? real{1} : options.class_weights[targets[row]]) *
          static_cast<real>(options.label_smoothing / static_cast<double>(classes) +
                            (j == targets[row] ? 1 - options.label_smoothing : 0));
  }
  return -sum(log(softmax(logits)) * Var(Array(logits.shape(), distribution)));
}

Var product(const Var& x, const Var& weight) { return matmul(x, weight, {Transpose::no, Transpose::yes}); }

}  // namespace

TEST_CASE("softmax cross-entropy equals its composition of primitives") {
  for (const Shape& shape : {Shape{9, 33}, Shape{1100, 35}, Shape{1, 2}, Shape{4, 2}}) {
    for (const double smoothing : {0.0, 0.1}) {
      CrossEntropyOptions options;
      options.label_smoothing = smoothing;
      const Ids targets = some_targets(shape[0], shape[1]);
      testing::check_agreement(
          to_string(shape), [&](const auto& v) { return softmax_cross_entropy(v[0], targets, options).sum; },
          [&](const auto& v) { return composed_loss(v[0], targets, options); }, {shape}, 2);
    }
  }
}

TEST_CASE("linear cross-entropy equals its composition of primitives, whatever the chunk") {
  struct Sizes {
    int64_t rows, dim, classes, chunk;
  };
  for (const Sizes& sizes : {Sizes{10, 5, 33, 0}, Sizes{10, 5, 33, 3}, Sizes{10, 5, 33, 1}, Sizes{10, 5, 33, 64},
                             Sizes{1100, 9, 35, 0}, Sizes{1100, 9, 35, 1000}}) {
    for (const double smoothing : {0.0, 0.1}) {
      CrossEntropyOptions options;
      options.label_smoothing = smoothing;
      options.chunk_rows = sizes.chunk;
      const Ids targets = some_targets(sizes.rows, sizes.classes);
      const Shape x{sizes.rows, sizes.dim}, weight{sizes.classes, sizes.dim};
      const std::string name = "rows " + std::to_string(sizes.rows) + ", chunk " + std::to_string(sizes.chunk);
      testing::check_agreement(
          name + ", bias", [&](const auto& v) { return linear_cross_entropy(v[0], v[1], v[2], targets, options).sum; },
          [&](const auto& v) { return composed_loss(product(v[0], v[1]) + v[2], targets, options); },
          {x, weight, Shape{sizes.classes}}, 1);
      testing::check_agreement(
          name, [&](const auto& v) { return linear_cross_entropy(v[0], v[1], Var(), targets, options).sum; },
          [&](const auto& v) { return composed_loss(product(v[0], v[1]), targets, options); }, {x, weight}, 1);
    }
  }
}

TEST_CASE("class weights multiply loss and gradient of their rows, and count nothing") {
  const int64_t rows = 11, classes = 5, dim = 3;
  CrossEntropyOptions options;
  options.class_weights = Array(Shape{classes}, std::vector<real>{2, 0, 1, 0.5, 3});
  const Ids targets = some_targets(rows, classes);
  for (const double smoothing : {0.0, 0.1}) {
    options.label_smoothing = smoothing;
    testing::check_agreement(
        "softmax", [&](const auto& v) { return softmax_cross_entropy(v[0], targets, options).sum; },
        [&](const auto& v) { return composed_loss(v[0], targets, options); }, {Shape{rows, classes}}, 2);
    testing::check_agreement(
        "linear", [&](const auto& v) { return linear_cross_entropy(v[0], v[1], v[2], targets, options).sum; },
        [&](const auto& v) { return composed_loss(product(v[0], v[1]) + v[2], targets, options); },
        {Shape{rows, dim}, Shape{classes, dim}, Shape{classes}}, 1);
  }
  const Var logits(testing::random_normal({rows, classes}, 3));
  CHECK(softmax_cross_entropy(logits, targets, options).targets == softmax_cross_entropy(logits, targets).targets);
  options.class_weights = Array(Shape{classes - 1}, real{1});
  CHECK_THROWS_AS(softmax_cross_entropy(logits, targets, options), std::invalid_argument);
}

TEST_CASE("losses take leading axes, count targets and hits, and skip ignored rows") {
  const Array logits(Shape{2, 3, 3}, std::vector<real>{0, 1, 0, 2, 0, 2, 1, 1, 1, 0, 0, 5, 9, 8, 7, 0, 3, 3});
  const Ids targets(Shape{2, 3}, std::vector<int32_t>{1, 2, 0, 2, -7,
                                                      1});  // hit, tie lost to class 0, tie won, hit, ignored, tie won
  CrossEntropyOptions options;
  options.ignored = -7;
  const CrossEntropy uncounted = softmax_cross_entropy(Var(logits), targets, options);
  CHECK(uncounted.targets == 5);
  CHECK(uncounted.correct == 0);
  options.count_correct = true;
  options.chunk_rows = 4;
  CHECK(softmax_cross_entropy(Var(logits), targets, options).correct == 4);
  const Array identity(Shape{3, 3}, std::vector<real>{1, 0, 0, 0, 1, 0, 0, 0, 1});
  const CrossEntropy linear = linear_cross_entropy(Var(logits), Var(identity), Var(), targets, options);
  CHECK(linear.correct == 4);
  CHECK(linear.targets == 5);
  CHECK(double{linear.sum.value().item()} == doctest::Approx(double{uncounted.sum.value().item()}).epsilon(1e-6));

  const Var leaf = Var::leaf(logits);
  TapeScope scope;
  scope.backward(softmax_cross_entropy(leaf, targets, options).sum);
  for (int64_t j = 0; j < 3; ++j) CHECK(leaf.grad()[4 * 3 + j] == 0);
}

TEST_CASE("rows that are all ignored give nothing") {
  const Ids targets(Shape{4}, int32_t{-1});
  const Var x = Var::leaf(testing::random_normal({4, 3}, 1)), weight = Var::leaf(testing::random_normal({5, 3}, 2));
  TapeScope scope;
  const CrossEntropy loss = linear_cross_entropy(x, weight, Var(), targets);
  CHECK(loss.targets == 0);
  CHECK(loss.sum.value().item() == 0);
  scope.backward(loss.sum);
  for (const Var* leaf : {&x, &weight})
    for (const real value : leaf->grad().to_vector()) CHECK(value == 0);
}

TEST_CASE("losses stay exact for logits of 1e4") {
  const int64_t classes = 35;
  std::vector<real> values(3 * classes, real(-1e4));
  values[4] = real(1e4);                                 // row 0: target is another class
  values[static_cast<size_t>(classes) + 2] = real(1e4);  // row 1: target is this class
  for (int64_t j = 0; j < classes; ++j) values[static_cast<size_t>(2 * classes + j)] = real(1e4);  // row 2: all equal
  const Ids targets(Shape{3}, std::vector<int32_t>{3, 2, 7});
  const Var logits = Var::leaf(Array(Shape{3, classes}, values));
  TapeScope scope;
  const Var sum = softmax_cross_entropy(logits, targets).sum;
  CHECK(double{sum.value().item()} == doctest::Approx(2e4 + std::log(35.0)).epsilon(1e-7));
  scope.backward(sum);
  const Array& grad = logits.grad();
  CHECK(grad[4] == 1);
  CHECK(grad[3] == -1);
  for (int64_t j = 0; j < classes; ++j) CHECK(grad[classes + j] == 0);
  CHECK(double{grad[2 * classes + 7]} == doctest::Approx(1.0 / 35 - 1));
}

TEST_CASE("a NaN logit makes the loss NaN") {
  const Var logits(Array(Shape{1, 3}, std::vector<real>{1, std::numeric_limits<real>::quiet_NaN(), 2}));
  CHECK(std::isnan(softmax_cross_entropy(logits, Ids(Shape{1}, int32_t{0})).sum.value().item()));
}

TEST_CASE("linear cross-entropy never holds all logits, and forms no gradients that nobody wants") {
  const int64_t rows = 2048, dim = 4, classes = 512;
  const size_t all_logits = static_cast<size_t>(rows * classes) * sizeof(real);
  const Var x = Var::leaf(testing::random_normal({rows, dim}, 1)),
            weight = Var::leaf(testing::random_normal({classes, dim}, 2));
  CrossEntropyOptions options;
  options.chunk_rows = 128;
  const Ids targets = some_targets(rows, classes);
  const size_t before = pool::stats().bytes_in_use;
  pool::reset_peak();
  {
    TapeScope scope;
    scope.backward(linear_cross_entropy(x, weight, Var(), targets, options).sum);
  }
  CHECK(pool::stats().peak_in_use - before < all_logits / 4);
  x.clear_grad();
  weight.clear_grad();
  pool::reset_peak();
  const Var unrecorded = linear_cross_entropy(x, weight, Var(), targets, options).sum;
  const size_t chunk_and_losses = all_logits / 16 + static_cast<size_t>(rows) * sizeof(real);
  CHECK(pool::stats().peak_in_use - before < chunk_and_losses + chunk_and_losses / 4);
  CHECK_FALSE(unrecorded.needs_grad());
}

TEST_CASE("the gradient of a loss scales with what comes back") {
  const Array x = testing::random_normal({6, 4}, 1), weight = testing::random_normal({5, 4}, 2);
  const Ids targets = some_targets(6, 5);
  Array once, half;
  for (Array* grad : {&once, &half}) {
    const Var leaf = Var::leaf(x), parameter = Var::leaf(weight);
    TapeScope scope;
    scope.backward(linear_cross_entropy(leaf, parameter, Var(), targets).sum, grad == &once ? real{1} : real(0.5));
    *grad = leaf.grad();
  }
  for (int64_t i = 0; i < once.size(); ++i) CHECK(half[i] == once[i] / 2);
}

TEST_CASE("losses name targets and shapes that do not fit") {
  const Var logits(Array(Shape{2, 4}, real{1})), weight(Array(Shape{4, 4}, real{1}));
  const Ids outside(Shape{2}, std::vector<int32_t>{0, 4}), negative(Shape{2}, std::vector<int32_t>{-2, 0});
  CHECK_THROWS_WITH_AS(softmax_cross_entropy(logits, outside),
                       "softmax_cross_entropy: target 4 in row 1 is outside [0, 4)", std::invalid_argument);
  CHECK_THROWS_WITH_AS(linear_cross_entropy(logits, weight, Var(), negative),
                       "linear_cross_entropy: target -2 in row 0 is outside [0, 4)", std::invalid_argument);
  CHECK_THROWS_AS(softmax_cross_entropy(logits, Ids(Shape{3}, int32_t{0})), std::invalid_argument);
  CHECK_THROWS_AS(linear_cross_entropy(logits, Var(Array(Shape{4, 3}, real{1})), Var(), Ids(Shape{2}, int32_t{0})),
                  std::invalid_argument);
  CrossEntropyOptions options;
  options.label_smoothing = 1;
  CHECK_THROWS_AS(softmax_cross_entropy(logits, Ids(Shape{2}, int32_t{0}), options), std::invalid_argument);
}

namespace {

/// Which of C labels N rows have: row 0 none, row 1 all, otherwise some.
Ids some_labels(const Shape& shape) {
  std::vector<int32_t> labels;
  for (int64_t row = 0; row < shape[0]; ++row)
    for (int64_t c = 0; c < shape[1]; ++c) labels.push_back(row == 1 || (row > 1 && (row * 5 + c * 3) % 7 < 2) ? 1 : 0);
  return Ids(shape, labels);
}

/// w t log(1 + e^-x) + (1 - t) log(1 + e^x), summed.
Var composed_label_loss(const Var& logits, const Ids& labels, const SigmoidCrossEntropyOptions& options) {
  std::vector<real> present, absent;
  const int64_t columns = logits.dim(1);
  for (int64_t i = 0; i < labels.size(); ++i) {
    const double target = (1 - options.label_smoothing) * labels[i] + options.label_smoothing / 2;
    const real weight = options.label_weights.empty() ? real{1} : options.label_weights[i % columns];
    present.push_back(weight * static_cast<real>(target));
    absent.push_back(static_cast<real>(1 - target));
  }
  const Var one(Array::scalar(1));
  return sum(log(one + exp(-logits)) * Var(Array(logits.shape(), present)) +
             log(one + exp(logits)) * Var(Array(logits.shape(), absent)));
}

}  // namespace

TEST_CASE("sigmoid cross-entropy equals its composition of primitives") {
  for (const Shape& shape : {Shape{5, 37}, Shape{1100, 3}, Shape{3, 1}, Shape{2, 16}})
    for (const double smoothing : {0.0, 0.3})
      for (const bool weighted : {false, true}) {
        SigmoidCrossEntropyOptions options;
        options.label_smoothing = smoothing;
        if (weighted) {
          options.label_weights = Array(Shape{shape[1]}, real{2});
          options.label_weights.mutable_data()[0] = real(0.5);
        }
        const Ids labels = some_labels(shape);
        testing::check_agreement(
            to_string(shape), [&](const auto& v) { return sigmoid_cross_entropy(v[0], labels, options); },
            [&](const auto& v) { return composed_label_loss(v[0], labels, options); }, {shape}, 2);
      }
}

TEST_CASE("sigmoid cross-entropy stays exact for logits of 1e4") {
  const std::vector<real> values = {real(1e4), real(1e4), real(-1e4), real(-1e4), 0};
  const Ids labels(Shape{1, 5}, std::vector<int32_t>{1, 0, 1, 0, 1});
  const Var logits = Var::leaf(Array(Shape{1, 5}, values));
  TapeScope scope;
  const Var sum = sigmoid_cross_entropy(logits, labels);
  CHECK(double{sum.value().item()} == doctest::Approx(2e4 + std::log(2.0)).epsilon(1e-7));
  scope.backward(sum);
  CHECK(logits.grad().to_vector() == std::vector<real>{0, 1, -1, 0, real(-0.5)});
  const Var unknown(Array(Shape{1, 2}, std::vector<real>{1, std::numeric_limits<real>::quiet_NaN()}));
  CHECK(std::isnan(sigmoid_cross_entropy(unknown, Ids(Shape{1, 2}, int32_t{1})).value().item()));
}

TEST_CASE("sigmoid cross-entropy names labels and shapes that do not fit") {
  const Var logits(Array(Shape{2, 4}, real{1}));
  CHECK_THROWS_WITH_AS(sigmoid_cross_entropy(logits, Ids(Shape{2, 4}, int32_t{2})),
                       "sigmoid_cross_entropy: label 2 at 0 is neither 0 nor 1", std::invalid_argument);
  CHECK_THROWS_WITH_AS(sigmoid_cross_entropy(logits, Ids(Shape{2}, int32_t{0})),
                       "sigmoid_cross_entropy: labels (2) do not fit logits (2, 4)", std::invalid_argument);
  SigmoidCrossEntropyOptions options;
  options.label_weights = Array(Shape{3}, real{1});
  CHECK_THROWS_WITH_AS(sigmoid_cross_entropy(logits, Ids(Shape{2, 4}, int32_t{0}), options),
                       "sigmoid_cross_entropy: label_weights (3) do not fit 4 labels", std::invalid_argument);
}
