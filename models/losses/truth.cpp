// Log probability of the true labels, made of primitives so that losses in models/losses need no pullback of their own.
// tests/models/test_classifier.cpp has extreme logits.
#include "models/losses/truth.hpp"

#include <algorithm>

#include "core/array/batch.hpp"
#include "core/base/error.hpp"
#include "core/ops/ops.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

void check_shapes(const LossInput& input) {
  const Shape rows{input.logits.dim(0)};
  check(input.logits.rank() == 2 && input.labels.shape() == (input.multi_label ? input.logits.shape() : rows),
        "loss: labels {} do not fit logits {}", input.labels.shape(), input.logits.shape());
  check(input.class_weights.empty() || input.class_weights.shape() == Shape{input.logits.dim(1)},
        "loss: class_weights {} do not fit logits {}", input.class_weights.shape(), input.logits.shape());
}

/// log(sum_c e^x_c), (N, C) -> (N, 1). The largest of a row is subtracted as a constant, which changes no gradient.
Var log_sum_exp(const Var& x) {
  const int64_t rows = x.dim(0), columns = x.dim(1);
  Array largest(Shape{rows, 1});
  for (int64_t row = 0; row < rows; ++row) {
    const real* const values = x.value().data() + row * columns;
    largest.mutable_data()[row] = *std::max_element(values, values + columns);
  }
  return log(sum(exp(x - Var(largest)), {1}, keep_dims)) + Var(largest);
}

}  // namespace

Var log_probability_of_truth(const LossInput& input) {
  check_shapes(input);
  const int64_t rows = input.logits.dim(0), classes = input.logits.dim(1);
  if (input.multi_label) {
    // log p = -log(1 + e^-x) for a label that the text has, -log(1 + e^x) for another: log_sum_exp of 0 and -x or x.
    Array sign(input.labels.shape());
    for (int64_t i = 0; i < sign.size(); ++i) sign.mutable_data()[i] = input.labels[i] == 1 ? real{-1} : real{1};
    const Var against = reshape(input.logits * Var(sign), {rows * classes, 1});
    const Var zero(Array::zeros(Shape{rows * classes, 1}));
    return neg(reshape(log_sum_exp(concatenate({zero, against}, 1)), {rows, classes}));
  }
  Array is_truth = Array::zeros(input.logits.shape());
  for (int64_t row = 0; row < rows; ++row) {
    const int32_t label = input.labels[row];
    if (label == ignored_target) continue;
    check(label >= 0 && label < classes, "loss: label {} in row {} is outside [0, {})", label, row, classes);
    is_truth.mutable_data()[row * classes + label] = 1;
  }
  const Var truth = sum(input.logits * Var(is_truth), {1}, keep_dims);
  return reshape(truth - log_sum_exp(input.logits), {rows});
}

Array factors_of_truth(const LossInput& input) {
  check_shapes(input);
  Array factors(input.labels.shape());
  const int64_t classes = input.logits.dim(1);
  for (int64_t i = 0; i < factors.size(); ++i) {
    const int32_t label = input.labels[i];
    const bool counts = input.multi_label || label != ignored_target, is_true = input.multi_label ? label == 1 : counts;
    real& factor = factors.mutable_data()[i];
    factor = counts ? real{1} : real{0};
    if (is_true && !input.class_weights.empty()) factor = input.class_weights[input.multi_label ? i % classes : label];
  }
  return factors;
}

}  // namespace capstan::CAPSTAN_PRECISION
