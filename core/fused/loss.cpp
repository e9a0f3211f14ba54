// linear_cross_entropy() forms the logits of some rows at a time, and while it has them also the gradients that are
// wanted: the pullback only scales these. The number of rows depends on the shape, so that a loss has the same bits on
// any number of threads; losses of rows are added in double. tests/core/fused/test_loss.cpp compares it with the
// composition.

#include "core/fused/loss.hpp"
#include <algorithm>

#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "core/fused/kernels/cross_entropy.hpp"
#include "core/fused/linear_products.hpp"
#include "core/kernels/column_sums.hpp"
#include "core/kernels/elementwise.hpp"
#include "core/machine/profile.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// Checks the targets against rows of `classes` logits and counts those that are not ignored.
int64_t count_targets(const char* op, const Shape& rows, int64_t classes, const Ids& targets,
                      const CrossEntropyOptions& options) {
  check(targets.shape() == rows, "{}: targets {} do not fit rows {}", op, targets.shape(), rows);
  check(options.class_weights.empty() || options.class_weights.shape() == Shape{classes},
        "{}: class_weights {} do not fit {} classes", op, options.class_weights.shape(), classes);
  check(options.label_smoothing >= 0 && options.label_smoothing < 1, "{}: label_smoothing must be in [0, 1), got {}",
        op, options.label_smoothing);
  int64_t counted = 0;
  for (int64_t row = 0; row < targets.size(); ++row) {
    const int32_t target = targets[row];
    if (target == options.ignored) continue;
    check(target >= 0 && target < classes, "{}: target {} in row {} is outside [0, {})", op, target, row, classes);
    ++counted;
  }
  return counted;
}

kernels::CrossEntropyPass make_pass(const Ids& targets, int64_t first, int64_t rows, int64_t classes,
                                    const CrossEntropyOptions& options) {
  const real* const weights = options.class_weights.empty() ? nullptr : options.class_weights.data();
  const auto smoothing = static_cast<real>(options.label_smoothing);
  return {rows, classes, targets.data() + first, options.ignored, smoothing, weights};
}

Array sum_of(const Array& losses) {
  double sum = 0;
  for (int64_t row = 0; row < losses.size(); ++row) sum += losses[row];
  return Array::scalar(static_cast<real>(sum));
}

/// Rows whose logits linear_cross_entropy holds at a time: `wanted` unless that is 0, else those of about 4 M logits,
/// but never so few rows that the products get slow; the same for all chunks.
int64_t rows_per_chunk(int64_t rows, int64_t classes, int64_t wanted) {
  const int64_t most = wanted > 0 ? wanted : std::max<int64_t>(512, (int64_t{1} << 22) / classes);
  const int64_t chunks = std::max<int64_t>(1, (rows + most - 1) / most);
  return wanted > 0 ? most : (rows + chunks - 1) / chunks;
}

/// The chunked forward pass of linear_cross_entropy, with the gradients of the summed loss that are wanted.
struct ChunkedLoss {
  const Var &x, &weight, &bias;
  const Ids& targets;
  const CrossEntropyOptions& options;
  LinearSizes sizes;
  Array dx = {}, dweight = {}, dbias = {};  // empty: not wanted
  Array losses = {};
  int64_t correct = 0;

  void run(bool with_gradients) {
    losses = Array(Shape{sizes.rows});
    if (with_gradients && x.needs_grad()) dx = Array(x.shape());
    if (with_gradients && weight.needs_grad()) dweight = Array::zeros(weight.shape());
    if (with_gradients && bias.needs_grad()) dbias = Array::zeros(bias.shape());
    const int64_t chunk = std::max<int64_t>(1, rows_per_chunk(sizes.rows, sizes.out, options.chunk_rows));
    Array logits(Shape{std::min(chunk, sizes.rows), sizes.out});
    for (int64_t first = 0; first < sizes.rows; first += chunk)
      run_chunk(first, std::min(chunk, sizes.rows - first), with_gradients, logits.mutable_data());
  }

  void run_chunk(int64_t first, int64_t rows, bool with_gradients, real* logits) {
    const kernels::CrossEntropyPass pass = make_pass(targets, first, rows, sizes.out, options);
    const LinearSizes chunk{rows, sizes.in, sizes.out};
    const Factor w(weight), x_rows(x.value().data() + first * sizes.in, rows * sizes.in, w);
    real* loss = losses.mutable_data() + first;
    multiply_rows(x_rows, w, bias ? bias.value().data() : nullptr, logits, chunk);
    if (options.count_correct) correct += kernels::count_correct(pass, logits);
    if (!with_gradients) return kernels::cross_entropy_forward(pass, logits, loss, nullptr, nullptr);
    kernels::cross_entropy_in_place(pass, logits, loss);
    const Factor dlogits(logits, rows * sizes.out, w);
    if (!dx.empty()) input_grad(dlogits, w, dx.mutable_data() + first * sizes.in, chunk);
    if (!dweight.empty()) weight_grad(dlogits, x_rows, dweight.mutable_data(), 1, chunk);
    if (!dbias.empty()) kernels::column_sums(logits, {dbias.mutable_data(), 1}, rows, sizes.out);
  }
};

/// factor * grad: into the input's block where it has one, over `grad` itself otherwise.
Grad scaled(Array& grad, real factor, const Needs& needs, size_t input) {
  if (!needs[input]) return {};
  if (real* block = needs.block(input)) {
    kernels::add_scaled(block, grad.data(), grad.size(), factor);
    return Grad::accumulated();
  }
  if (factor != 1) kernels::scale(grad.mutable_data(), grad.data(), grad.size(), factor);
  return std::move(grad);
}

/// (1 - s) y + s / 2.
Array smoothed(const Ids& labels, double smoothing) {
  Array targets(labels.shape());
  real* const out = targets.mutable_data();
  const auto absent = static_cast<real>(smoothing / 2), present = static_cast<real>(1 - smoothing / 2);
  for (int64_t i = 0; i < labels.size(); ++i) {
    check(labels[i] == 0 || labels[i] == 1, "sigmoid_cross_entropy: label {} at {} is neither 0 nor 1", labels[i], i);
    out[i] = labels[i] == 1 ? present : absent;
  }
  return targets;
}

}  // namespace

CrossEntropy softmax_cross_entropy(const Var& logits, const Ids& targets, const CrossEntropyOptions& options) {
  const ProfileSpan span;
  check(logits.rank() >= 1, "softmax_cross_entropy: logits must be (..., V), got shape {}", logits.shape());
  const int64_t classes = logits.dim(-1), rows = logits.shape().product(0, logits.rank() - 1);
  CrossEntropy result;
  result.targets = count_targets("softmax_cross_entropy", logits.shape().without(-1), classes, targets, options);
  const kernels::CrossEntropyPass pass = make_pass(targets, 0, rows, classes, options);
  Array losses(Shape{rows}), largest(Shape{rows}), inverse(Shape{rows});
  kernels::cross_entropy_forward(pass, logits.value().data(), losses.mutable_data(), largest.mutable_data(),
                                 inverse.mutable_data());
  if (options.count_correct) result.correct = kernels::count_correct(pass, logits.value().data());
  result.sum = make_var("softmax_cross_entropy", sum_of(losses), {logits},
                        [x = logits.value(), targets, weights = options.class_weights, largest, inverse, pass](
                            const Array& dy, const Needs&) mutable -> Grads {
                          const real* x_data = x.data();
                          Array dx = take_or_make(x);
                          kernels::cross_entropy_backward(pass, x_data, largest.data(), inverse.data(), dy.item(),
                                                          dx.mutable_data());
                          return {std::move(dx)};
                        });
  return result;
}

CrossEntropy linear_cross_entropy(const Var& x, const Var& weight, const Var& bias, const Ids& targets,
                                  const CrossEntropyOptions& options) {
  const ProfileSpan span;
  const char* op = "linear_cross_entropy";
  ChunkedLoss loss{x, weight, bias, targets, options, linear_sizes(x.shape(), weight.shape(), bias, op)};
  check(options.chunk_rows >= 0, "{}: chunk_rows must not be negative, got {}", op, options.chunk_rows);
  CrossEntropy result;
  result.targets = count_targets(op, x.shape().without(-1), loss.sizes.out, targets, options);
  loss.run(recording({x, weight, bias}));
  result.correct = loss.correct;
  declare_traffic((x.size() + weight.size() + loss.dx.size() + loss.dweight.size() + loss.dbias.size()) *
                  static_cast<int64_t>(sizeof(real)));
  result.sum = make_var(
      op, sum_of(loss.losses), {x, weight, bias},
      [dx = std::move(loss.dx), dweight = std::move(loss.dweight), dbias = std::move(loss.dbias)](
          const Array& dy, const Needs& needs) mutable -> Grads {
        const real factor = dy.item();
        // The forward pass made the gradients: a factor of 1 leaves dx as it is.
        const int64_t scaled_values = factor == 1 ? 0 : 2 * dx.size();
        declare_traffic((scaled_values + 3 * (dweight.size() + dbias.size())) * static_cast<int64_t>(sizeof(real)));
        Grads grads(3);
        grads[0] = scaled(dx, factor, needs, 0);
        grads[1] = scaled(dweight, factor, needs, 1);
        grads[2] = scaled(dbias, factor, needs, 2);
        return grads;
      });
  return result;
}

Var sigmoid_cross_entropy(const Var& logits, const Ids& labels, const SigmoidCrossEntropyOptions& options) {
  const ProfileSpan span;
  const char* op = "sigmoid_cross_entropy";
  check(logits.rank() >= 1 && labels.shape() == logits.shape(), "{}: labels {} do not fit logits {}", op,
        labels.shape(), logits.shape());
  const int64_t columns = logits.dim(-1), rows = logits.shape().product(0, logits.rank() - 1);
  check(options.label_weights.empty() || options.label_weights.shape() == Shape{columns},
        "{}: label_weights {} do not fit {} labels", op, options.label_weights.shape(), columns);
  check(options.label_smoothing >= 0 && options.label_smoothing < 1, "{}: label_smoothing must be in [0, 1), got {}",
        op, options.label_smoothing);
  const Array targets = smoothed(labels, options.label_smoothing);
  const kernels::SigmoidCrossEntropyPass pass{rows, columns, targets.data(),
                                              options.label_weights.empty() ? nullptr : options.label_weights.data()};
  Array losses(Shape{rows});
  kernels::sigmoid_cross_entropy_forward(pass, logits.value().data(), losses.mutable_data());
  return make_var(op, sum_of(losses), {logits},
                  [x = logits.value(), targets, weights = options.label_weights, pass](const Array& dy,
                                                                                       const Needs&) mutable -> Grads {
                    const real* const x_data = x.data();
                    Array dx = take_or_make(x);
                    kernels::sigmoid_cross_entropy_backward(pass, x_data, dy.item(), dx.mutable_data());
                    return {std::move(dx)};
                  });
}

}  // namespace capstan::CAPSTAN_PRECISION
