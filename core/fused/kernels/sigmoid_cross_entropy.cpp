#include "core/fused/kernels/sigmoid_cross_entropy.hpp"

#include "core/kernels/column_sums.hpp"
#include "core/kernels/simd.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace kernels {
namespace {

using simd::Batch;

/// A logit whose label is certainly absent: without loss where the target is 0.
constexpr real surely_absent = -1e4;

/// body(row, place, w t, 1 - t) over all logits; the rows in parallel.
template <class Body, class Finish>
void for_logits(const SigmoidCrossEntropyPass& pass, const Body& body, const Finish& finish) {
  parallel_for(pass.rows, row_grain(pass.columns), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const real* const targets = pass.targets + row * pass.columns;
      Batch sum(real{0});
      simd::sweep(pass.columns, [&](auto at) {
        const Batch one(real{1}), target = at.load(targets);
        const Batch weight = pass.label_weights != nullptr ? at.load(pass.label_weights) : one;
        body(row * pass.columns, at, weight * target, one - target, sum);
      });
      finish(row, simd::sum(sum));
    }
  });
}

}  // namespace

void sigmoid_cross_entropy_forward(const SigmoidCrossEntropyPass& pass, const real* logits, real* loss) {
  for_logits(
      pass,
      [&](int64_t first, auto at, const Batch& present, const Batch& absent, Batch& sum) {
        const Batch x = at.load(logits + first, surely_absent), zero(real{0});
        // -log p = max(-x, 0) + log(1 + e^-|x|): no difference of large numbers.
        const Batch tail = xsimd::log1p(xsimd::exp(-xsimd::abs(x)));
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

}  // namespace kernels
}  // namespace capstan::CAPSTAN_PRECISION
