// One query against a cache, in blocks of 64 keys: logits, weights, then values. The softmax keeps a running maximum,
// and what was summed is scaled down when it rises (Milakov and Gimelshein 2018, arXiv 1805.02867), so keys of 10^4 are
// no problem. The blocks are the same whoever asks: a text has the same bits alone and in company.
#include "nn/systems/quadratic/kernels/decode.hpp"

#include <algorithm>
#include <limits>

#include "core/base/math.hpp"
#include "core/kernels/simd_sums.hpp"
#include "nn/systems/quadratic/kernels/attention_functions.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {
namespace {

using simd::Batch;

/// Keys that are handled together: their logits stay in the first-level cache.
constexpr int64_t block = 64;

/// logits[j] = scale (q . k_j) + bias_j for the rows [first, first + count).
void block_logits(const AttentionCache& cache, int64_t first, int64_t count, real scale, const real* bias,
                  const real* q, real* logits) {
  constexpr int64_t together = 4;  // independent sums hide the latency of the additions
  const auto dots = [&](int64_t j, auto rows) {
    constexpr int64_t size = decltype(rows)::value;
    const real* const keys = cache.keys + (first + j) * cache.key_stride;
    simd::Sum sums[size];
    simd::sweep_sums(cache.key_width, [&](auto at) {
      const Batch query = at.load(q);
      for (int64_t i = 0; i < size; ++i)
        sums[i][at] = simd::fma(query, at.load(keys + i * cache.key_stride), sums[i][at]);
    });
    for (int64_t i = 0; i < size; ++i)
      logits[j + i] = scale * sums[i].total() + (bias != nullptr ? bias[first + j + i] : 0);
  };
  int64_t j = 0;
  for (; j + together <= count; j += together) dots(j, std::integral_constant<int64_t, together>{});
  for (; j < count; ++j) dots(j, std::integral_constant<int64_t, 1>{});
}

/// y = keep y + sum_j weights[j] v_j over the rows [first, first + count).
void add_values(const AttentionCache& cache, int64_t first, int64_t count, const real* weights, real keep, real* y) {
  const real* const values = cache.values + first * cache.value_stride;
  simd::sweep_groups<8>(cache.value_width, [&](auto group) {
    Batch sums[group.size];
    for (int i = 0; i < group.size; ++i) sums[i] = Batch(keep) * group.places[i].load(y);
    for (int64_t j = 0; j < count; ++j)
      for (int i = 0; i < group.size; ++i)
        sums[i] = simd::fma(Batch(weights[j]), group.places[i].load(values + j * cache.value_stride), sums[i]);
    for (int i = 0; i < group.size; ++i) group.places[i].store(y, sums[i]);
  });
}

/// weights = e^(weights - maximum); returns their sum.
real exponentials(real* weights, int64_t count, real maximum) {
  simd::Sum sum;
  simd::sweep_sums(count, [&](auto at) {
    const Batch e = simd::exp(at.load(weights, std::numeric_limits<real>::lowest()) - Batch(maximum));
    at.store(weights, e);
    sum[at] += e;
  });
  return sum.total();
}

template <class Function>
void apply(real* weights, int64_t count) {
  simd::sweep(count, [&](auto at) { at.store(weights, Function::value(at.load(weights))); });
}

}  // namespace

void attention_decode(const AttentionCache& cache, AttentionKernel kernel, real scale, const real* bias,
                      real output_scale, const real* q, real* y) {
  alignas(64) real weights[block];
  real maximum = std::numeric_limits<real>::lowest(), total = 0;
  std::fill_n(y, cache.value_width, real{0});
  for (int64_t first = 0; first < cache.count; first += block) {
    const int64_t count = std::min(block, cache.count - first);
    block_logits(cache, first, count, scale, bias, q, weights);
    real keep = 1;
    switch (kernel) {
      case AttentionKernel::softmax: {
        const real higher = std::max(maximum, *std::max_element(weights, weights + count));
        keep = static_cast<real>(math::exp(double{maximum} - double{higher}));
        maximum = higher;
        total = keep * total + exponentials(weights, count, maximum);
        break;
      }
      case AttentionKernel::squared_relu:
        apply<SquaredRelu>(weights, count);
        break;
      case AttentionKernel::laplace:
        apply<Laplace>(weights, count);
        break;
    }
    add_values(cache, first, count, weights, keep, y);
  }
  const real factor = kernel == AttentionKernel::softmax && total > 0 ? output_scale / total : output_scale;
  for (int64_t e = 0; e < cache.value_width; ++e) y[e] *= factor;
}

}  // namespace capstan::CAPSTAN_PRECISION::kernels
