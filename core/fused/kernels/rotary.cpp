// Rotary positions: turns pairs of features, row by row. rotate() is for core/fused/rotary.cpp, rotate_row() for passes
// of nn/systems/gated. tests/core/fused/test_rotary.cpp and gradcheck_fused.cpp.

#include "core/fused/kernels/rotary.hpp"
#include <algorithm>

#include "core/kernels/column_sums.hpp"
#include "core/kernels/simd.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {
namespace {

using simd::Batch;

void rotate_halves(const real* x, const real* cosine, const real* sine, real sign, real* y, int64_t pairs) {
  simd::sweep(pairs, [&](auto at) {
    const Batch a = at.load(x), b = at.load(x + pairs), c = at.load(cosine), s = Batch(sign) * at.load(sine);
    at.store(y, a * c - b * s);
    at.store(y + pairs, a * s + b * c);
  });
}

void rotate_interleaved(const real* x, const real* cosine, const real* sine, real sign, real* y, int64_t pairs) {
#pragma omp simd  // each step reads and writes its own pair only, also where y is x
  for (int64_t i = 0; i < pairs; ++i) {
    const real a = x[2 * i], b = x[2 * i + 1], c = cosine[i], s = sign * sine[i];
    y[2 * i] = a * c - b * s;
    y[2 * i + 1] = a * s + b * c;
  }
}

}  // namespace

RotateRow rotate_row(bool interleaved) { return interleaved ? rotate_interleaved : rotate_halves; }

void rotate(const RotaryPass& pass, bool backwards, const real* x, real* y) {
  const real sign = backwards ? real{-1} : real{1};
  const int64_t row_size = pass.heads * pass.width, untouched = pass.width - 2 * pass.pairs;
  const int64_t turned = pass.turned_heads == 0 ? pass.heads : pass.turned_heads;
  const RotateRow rotate_one = rotate_row(pass.interleaved);
  for_rows(pass.rows, row_size, [&](int64_t row) {
    const int64_t table_at = pass.table_rows[row] * pass.pairs;
    for (int64_t head = 0; head < turned; ++head) {
      const int64_t first = row * row_size + head * pass.width;
      rotate_one(x + first, pass.cosine + table_at, pass.sine + table_at, sign, y + first, pass.pairs);
      if (x != y) std::copy_n(x + first + 2 * pass.pairs, untouched, y + first + 2 * pass.pairs);
    }
    // Heads after the turned ones are copied.
    const int64_t first = row * row_size + turned * pass.width;
    if (x != y) std::copy_n(x + first, (pass.heads - turned) * pass.width, y + first);
  });
}

}  // namespace capstan::CAPSTAN_PRECISION::kernels
