// Compiled with -fno-math-errno (core/CMakeLists.txt), without which sqrt would keep the AdamW loop scalar.
#include "core/kernels/optimizer.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/math.hpp"
#include "core/machine/parallel.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {
namespace {

// Threads split the blocks at multiples of this: a loop's SIMD body and its scalar tail may round differently, so the
// boundary between them must not move with the number of threads.
constexpr int64_t unit = 64;
constexpr int64_t grain = 16384 / unit;
constexpr int64_t chunk = 64 * unit;  // updated and then cleared while it is in the first-level cache

/// body(begin, end, decayed) over pieces that lie on one side of decay_size.
template <class Body>
void for_dense_pieces(int64_t count, int64_t decay_size, const Body& body) {
  const int64_t boundaries[] = {0, std::min(decay_size, count), count};
  for (int side = 0; side < 2; ++side) {
    const int64_t first = boundaries[side], size = boundaries[side + 1] - first;
    parallel_for((size + unit - 1) / unit, grain, [&](int64_t begin, int64_t end) {
      body(first + begin * unit, first + std::min(end * unit, size), side == 0);
    });
  }
}

/// body(begin, end, gradients, decayed) over all that an update visits, with the gradients of [begin, end); a row of a
/// table is one piece.
template <class Body>
void for_pieces(const UpdateBlocks& blocks, const Body& body) {
  for_dense_pieces(blocks.count, blocks.decay_size, [&](int64_t begin, int64_t end, bool decayed) {
    for (int64_t first = begin; first < end; first += chunk) {
      real* const grads = blocks.grads + first;
      const int64_t last = std::min(first + chunk, end);
      body(first, last, static_cast<const real*>(grads), decayed);
      std::fill_n(grads, last - first, real{0});
    }
  });
  for (int64_t t = 0; t < blocks.table_count; ++t) {
    const TableRows& table = blocks.tables[t];
    parallel_each(table.count, 1 + grain * unit / std::max<int64_t>(table.width, 1), [&](int64_t i) {
      const int64_t first = table.offset + table.rows[i] * table.width;
      body(first, first + table.width, table.grads + i * table.width, table.decay);
    });
  }
}

}  // namespace

double row_squares(const real* row, int64_t width) {
  constexpr int64_t together = 32;  // sums side by side, more than a CPU computes at once
  double sums[together] = {};
  const auto add = [&](int64_t c, int64_t count) {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) sums[i] += static_cast<double>(row[c + i]) * static_cast<double>(row[c + i]);
  };
  int64_t c = 0;
  for (; c + together <= width; c += together) add(c, together);
  add(c, width - c);
  for (int64_t half = together / 2; half > 0; half /= 2)
    for (int64_t i = 0; i < half; ++i) sums[i] += sums[i + half];
  return sums[0];
}

double sum_of_squares(const real* in, int64_t count) {
  constexpr int64_t pieces = 256;
  double sums[pieces];
  const int64_t size = (count + pieces - 1) / pieces;
  parallel_each(pieces, std::max<int64_t>(1, grain * unit / std::max<int64_t>(size, 1)), [&](int64_t piece) {
    const int64_t first = std::min(piece * size, count);
    sums[piece] = row_squares(in + first, std::min(size, count - first));
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

void adamw(const UpdateBlocks& blocks, real* m, real* v, const AdamWStep& step) {
  const double correction1 = 1 - math::pow(step.beta1, static_cast<double>(step.step));
  const double correction2 = 1 - math::pow(step.beta2, static_cast<double>(step.step));
  const real scale = static_cast<real>(blocks.grad_scale), epsilon = static_cast<real>(step.epsilon);
  const real beta1 = static_cast<real>(step.beta1), rest1 = static_cast<real>(1 - step.beta1);
  const real beta2 = static_cast<real>(step.beta2), rest2 = static_cast<real>(1 - step.beta2);
  const real rate = static_cast<real>(step.lr / correction1), root = static_cast<real>(1 / std::sqrt(correction2));
  real* const w = blocks.values;
  for_pieces(blocks, [&](int64_t begin, int64_t end, const real* grads, bool decayed) {
    const real keep = decayed ? static_cast<real>(1 - step.lr * step.weight_decay) : real{1};
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {
      const real g = scale * grads[i - begin];
      m[i] = beta1 * m[i] + rest1 * g;
      v[i] = beta2 * v[i] + rest2 * g * g;
      w[i] = keep * w[i] - rate * m[i] / (std::sqrt(v[i]) * root + epsilon);
    }
  });
}

void sgd(const UpdateBlocks& blocks, real* m, const SgdStep& step) {
  const real scale = static_cast<real>(blocks.grad_scale), rate = static_cast<real>(step.lr);
  const real momentum = static_cast<real>(step.momentum);
  real* const w = blocks.values;
  for_pieces(blocks, [&](int64_t begin, int64_t end, const real* grads, bool decayed) {
    const real decay = decayed ? static_cast<real>(step.weight_decay) : real{0};
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {
      m[i] = momentum * m[i] + (scale * grads[i - begin] + decay * w[i]);
      w[i] -= rate * m[i];
    }
  });
}

void lion(const UpdateBlocks& blocks, real* m, const LionStep& step) {
  const real scale = static_cast<real>(blocks.grad_scale), rate = static_cast<real>(step.lr);
  const real beta1 = static_cast<real>(step.beta1), rest1 = static_cast<real>(1 - step.beta1);
  const real beta2 = static_cast<real>(step.beta2), rest2 = static_cast<real>(1 - step.beta2);
  real* const w = blocks.values;
  for_pieces(blocks, [&](int64_t begin, int64_t end, const real* grads, bool decayed) {
    const real keep = decayed ? static_cast<real>(1 - step.lr * step.weight_decay) : real{1};
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {
      const real g = scale * grads[i - begin];
      const real direction = beta1 * m[i] + rest1 * g;
      const real sign = (direction > 0 ? real{1} : real{0}) - (direction < 0 ? real{1} : real{0});
      w[i] = keep * w[i] - rate * sign;
      m[i] = beta2 * m[i] + rest2 * g;
    }
  });
}

}  // namespace capstan::CAPSTAN_PRECISION::kernels
