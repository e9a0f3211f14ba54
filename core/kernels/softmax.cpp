#include "core/kernels/softmax.hpp"

#include <xsimd/xsimd.hpp>

#include <cmath>
#include <limits>

namespace capstan::CAPSTAN_PRECISION {
namespace kernels {
namespace {

using Batch = xsimd::batch<real>;
constexpr auto width = static_cast<int64_t>(Batch::size);
constexpr real infinity = std::numeric_limits<real>::infinity();

/// The ragged end of a row goes through a padded register too, so that it is computed as the body is.
Batch load(const real* in, int64_t left, real padding) {
  if (left >= width) return Batch::load_unaligned(in);
  alignas(64) real lanes[width];
  for (int64_t i = 0; i < width; ++i) lanes[i] = i < left ? in[i] : padding;
  return Batch::load_aligned(lanes);
}

void store(real* out, const Batch& batch, int64_t left) {
  if (left >= width) return batch.store_unaligned(out);
  alignas(64) real lanes[width];
  batch.store_aligned(lanes);
  for (int64_t i = 0; i < left; ++i) out[i] = lanes[i];
}

/// x with -infinity where it takes no part.
Batch load_visible(const real* x, const real* mask, int64_t at, int64_t count) {
  const Batch value = load(x + at, count - at, -infinity);
  if (mask == nullptr) return value;
  return xsimd::select(load(mask + at, count - at, 0) != Batch(0), value, Batch(-infinity));
}

real row_max(const real* x, const real* mask, int64_t count) {
  Batch best(-infinity);
  for (int64_t at = 0; at < count; at += width) best = xsimd::max(best, load_visible(x, mask, at, count));
  alignas(64) real lanes[width];
  best.store_aligned(lanes);
  real result = lanes[0];
  for (const real lane : lanes) result = lane > result ? lane : result;
  return result;
}

/// sum e^(x - m); the terms go to `terms` when it is not null. NaN in x reaches the sum.
real sum_exp(real* terms, const real* x, const real* mask, real m, int64_t count) {
  Batch sum(0);
  for (int64_t at = 0; at < count; at += width) {
    const Batch term = xsimd::exp(load_visible(x, mask, at, count) - Batch(m));
    if (terms != nullptr) store(terms + at, term, count - at);
    sum += term;
  }
  return xsimd::hadd(sum);
}

bool has_nan(const real* x, const real* mask, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    if ((mask == nullptr || mask[i] != 0) && x[i] != x[i]) return true;
  return false;
}

void set(real* out, real value, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = value;
}

/// Is every visible entry -infinity, so that there is nothing to share out?
bool nothing_visible(const real* x, const real* mask, real m, int64_t count) {
  return m == -infinity && !has_nan(x, mask, count);
}

}  // namespace

void softmax_row(real* out, const real* x, const real* mask, int64_t count) {
  const real m = row_max(x, mask, count);
  if (nothing_visible(x, mask, m, count)) return set(out, 0, count);
  const real scale = 1 / sum_exp(out, x, mask, m, count);
  for (int64_t i = 0; i < count; ++i) out[i] *= scale;
}

void softmax_row_grad(real* dx, const real* g, const real* y, int64_t count) {
  real dot = 0;
#pragma omp simd reduction(+ : dot)
  for (int64_t i = 0; i < count; ++i) dot += g[i] * y[i];
  for (int64_t i = 0; i < count; ++i) dx[i] = y[i] * (g[i] - dot);
}

void log_softmax_row(real* out, const real* x, const real* mask, int64_t count) {
  const real m = row_max(x, mask, count);
  if (nothing_visible(x, mask, m, count)) return set(out, 0, count);
  const real log_sum = std::log(sum_exp(nullptr, x, mask, m, count));
  // m first: where x is large, m + log_sum would round the logarithm away.
  for (int64_t i = 0; i < count; ++i) out[i] = mask == nullptr || mask[i] != 0 ? (x[i] - m) - log_sum : 0;
}

void log_softmax_row_grad(real* dx, const real* g, const real* y, const real* mask, int64_t count) {
  real sum = 0;
  bool all_zero = true;
#pragma omp simd reduction(+ : sum) reduction(& : all_zero)
  for (int64_t i = 0; i < count; ++i) {
    sum += mask == nullptr || mask[i] != 0 ? g[i] : 0;
    all_zero = all_zero & (y[i] == 0);
  }
  // Only a row in which nothing (or one entry, whose gradient is 0 as well) is visible has no logarithm below 0.
  if (all_zero) return set(dx, 0, count);
  for (int64_t at = 0; at < count; at += width) {
    const Batch dy = load(g + at, count - at, 0);
    const Batch grad = dy - xsimd::exp(load(y + at, count - at, 0)) * Batch(sum);
    store(dx + at, mask == nullptr ? grad : xsimd::select(load(mask + at, count - at, 0) != Batch(0), grad, Batch(0)),
          count - at);
  }
}

real logsumexp_row(const real* x, int64_t count) {
  const real m = row_max(x, nullptr, count);
  if (std::isinf(m)) return has_nan(x, nullptr, count) ? std::numeric_limits<real>::quiet_NaN() : m;
  return m + std::log(sum_exp(nullptr, x, nullptr, m, count));
}

void logsumexp_row_grad(real* dx, real g, real y, const real* x, int64_t count) {
  if (y == -infinity) return set(dx, 0, count);
  for (int64_t at = 0; at < count; at += width)
    store(dx + at, Batch(g) * xsimd::exp(load(x + at, count - at, -infinity) - Batch(y)), count - at);
}

}  // namespace kernels
}  // namespace capstan::CAPSTAN_PRECISION
