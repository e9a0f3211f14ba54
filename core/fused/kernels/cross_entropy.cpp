// Losses are sums of differences to the largest logit of a row, so they stay exact for logits of 1e4, and every sum
// over a row is a simd::Sum, which has the same bits at every width of registers: tests/core/fused/test_loss.cpp.

#include "core/fused/kernels/cross_entropy.hpp"
#include <algorithm>
#include <atomic>
#include <limits>

#include "core/base/math.hpp"
#include "core/kernels/column_sums.hpp"
#include "core/kernels/simd.hpp"
#include "core/kernels/simd_sums.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {
namespace {

using simd::Batch;

real row_maximum(const real* x, int64_t columns) {
  const real lowest = -std::numeric_limits<real>::infinity();
  Batch largest(lowest);
  simd::sweep(columns, [&](auto at) { largest = xsimd::max(largest, at.load(x, lowest)); });
  return simd::maximum(largest);
}

/// Sum of e^(x - largest); the terms go to `terms` unless it is null.
real exponential_sum(const real* x, real largest, real* terms, int64_t columns) {
  const real lowest = -std::numeric_limits<real>::infinity();
  simd::Sum sum;
  simd::sweep_sums(columns, [&](auto at) {
    const Batch term = simd::exp(at.load(x, lowest) - Batch(largest));
    sum[at] += term;
    if (terms != nullptr) at.store(terms, term);
  });
  return sum.total();
}

/// What the loss of a row is multiplied by.
real weight_of(const CrossEntropyPass& pass, int32_t target) {
  return pass.class_weights != nullptr ? pass.class_weights[target] : real{1};
}

/// Mean logit of a row, less its largest; only smoothing asks for it.
real mean_gap(const CrossEntropyPass& pass, const real* x, real largest) {
  return pass.smoothing == 0 ? 0 : simd::sum(x, pass.columns) / static_cast<real>(pass.columns) - largest;
}

/// The loss of a row, from differences to the largest logit: these stay exact where logits are large.
real row_loss(const CrossEntropyPass& pass, real target_gap, real mean, real sum) {
  return static_cast<real>(math::log(double{sum})) - (1 - pass.smoothing) * target_gap - pass.smoothing * mean;
}

/// out = factor * (probability - target distribution), with probability(place) given.
template <class Probability>
void gradient_row(const CrossEntropyPass& pass, int32_t target, real factor, real* out,
                  const Probability& probability) {
  const Batch scale(factor), even(pass.smoothing / static_cast<real>(pass.columns));
  simd::sweep(pass.columns, [&](auto at) { at.store(out, scale * (probability(at) - even)); });
  out[target] -= factor * (1 - pass.smoothing);
}

/// What the lanes after the last column hold: with the target 0, which these lanes have, its loss is 0.
constexpr real surely_absent = -1e4;

/// body(row, place, w t, 1 - t) over all logits; the rows in parallel.
template <class Body, class Finish>
void for_logits(const SigmoidCrossEntropyPass& pass, const Body& body, const Finish& finish) {
  for_rows(pass.rows, pass.columns, [&](int64_t row) {
    const real* const targets = pass.targets + row * pass.columns;
    simd::Sum sum;
    simd::sweep_sums(pass.columns, [&](auto at) {
      const Batch one(real{1}), target = at.load(targets);
      const Batch weight = pass.label_weights != nullptr ? at.load(pass.label_weights) : one;
      body(row * pass.columns, at, weight * target, one - target, sum[at]);
    });
    finish(row, sum.total());
  });
}

}  // namespace

void cross_entropy_forward(const CrossEntropyPass& pass, const real* logits, real* loss, real* largest, real* inverse) {
  for_rows(pass.rows, pass.columns, [&](int64_t row) {
    const int32_t target = pass.targets[row];
    const bool counted = target != pass.ignored;
    const real* x = logits + row * pass.columns;
    const real top = counted ? row_maximum(x, pass.columns) : real{0};
    const real sum = counted ? exponential_sum(x, top, nullptr, pass.columns) : real{1};
    loss[row] = counted ? weight_of(pass, target) * row_loss(pass, x[target] - top, mean_gap(pass, x, top), sum) : 0;
    if (largest != nullptr) largest[row] = top;
    if (inverse != nullptr) inverse[row] = 1 / sum;
  });
}

void cross_entropy_backward(const CrossEntropyPass& pass, const real* logits, const real* largest, const real* inverse,
                            real factor, real* dlogits) {
  for_rows(pass.rows, pass.columns, [&](int64_t row) {
    const int32_t target = pass.targets[row];
    const real* x = logits + row * pass.columns;
    real* out = dlogits + row * pass.columns;
    if (target == pass.ignored) {
      std::fill_n(out, pass.columns, real{0});
      return;
    }
    const Batch top(largest[row]), scale(inverse[row]);
    gradient_row(pass, target, factor * weight_of(pass, target), out,
                 [&](auto at) { return simd::exp(at.load(x) - top) * scale; });
  });
}

void cross_entropy_in_place(const CrossEntropyPass& pass, real* logits, real* loss) {
  for_rows(pass.rows, pass.columns, [&](int64_t row) {
    const int32_t target = pass.targets[row];
    real* x = logits + row * pass.columns;
    if (target == pass.ignored) {
      loss[row] = 0;
      std::fill_n(x, pass.columns, real{0});
      return;
    }
    const real top = row_maximum(x, pass.columns);
    // Read before the exponentials take their place.
    const real target_gap = x[target] - top, mean = mean_gap(pass, x, top);
    const real sum = exponential_sum(x, top, x, pass.columns);
    const real weight = weight_of(pass, target);
    loss[row] = weight * row_loss(pass, target_gap, mean, sum);
    const Batch scale(1 / sum);
    gradient_row(pass, target, weight, x, [&](auto at) { return at.load(x) * scale; });
  });
}

int64_t count_correct(const CrossEntropyPass& pass, const real* logits) {
  std::atomic<int64_t> correct{0};
  parallel_for(pass.rows, row_grain(pass.columns), [&](int64_t begin, int64_t end) {
    int64_t hits = 0;
    for (int64_t row = begin; row < end; ++row) {
      const int32_t target = pass.targets[row];
      if (target == pass.ignored) continue;
      const real* x = logits + row * pass.columns;
      const bool highest = x[target] == row_maximum(x, pass.columns);
      hits += highest && std::find(x, x + target, x[target]) == x + target;
    }
    correct += hits;
  });
  return correct;
}

void sigmoid_cross_entropy_forward(const SigmoidCrossEntropyPass& pass, const real* logits, real* loss) {
  for_logits(
      pass,
      [&](int64_t first, auto at, const Batch& present, const Batch& absent, Batch& sum) {
        const Batch x = at.load(logits + first, surely_absent), zero(real{0});
        // -log p = max(-x, 0) + log(1 + e^-|x|): no difference of large numbers.
        const Batch tail = simd::log1p(simd::exp(-xsimd::abs(x)));
        sum += present * (xsimd::max(-x, zero) + tail) + absent * (xsimd::max(x, zero) + tail);
      },
      [&](int64_t row, real sum) { loss[row] = sum; });
}

void sigmoid_cross_entropy_backward(const SigmoidCrossEntropyPass& pass, const real* logits, real factor,
                                    real* dlogits) {
  for_logits(
      pass,
      [&](int64_t first, auto at, const Batch& present, const Batch& absent, Batch&) {
        const Batch x = at.load(logits + first);
        at.store(dlogits + first, Batch(factor) * (absent * simd::sigmoid(x) - present * simd::sigmoid(-x)));
      },
      [](int64_t, real) {});
}

}  // namespace capstan::CAPSTAN_PRECISION::kernels
