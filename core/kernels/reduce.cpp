#include "core/kernels/reduce.hpp"

#include <algorithm>

#include "core/machine/parallel.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {
namespace {

constexpr int64_t block = 512;   // terms summed in working precision before they join the rest
constexpr int64_t columns = 64;  // handled together where the reduced axis is not the last

/// Pieces for parallel_for of units that each touch `size` elements.
int64_t unit_grain(int64_t size) { return 1 + elementwise_grain / std::max<int64_t>(size, 1); }

real sum_run(const real* in, int64_t count) {
  double total = 0;
  for (int64_t first = 0; first < count; first += block) {
    const int64_t last = std::min(first + block, count);
    real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = first; i < last; ++i) sum += in[i];
    total += sum;
  }
  return static_cast<real>(total);
}

/// A single long run: its blocks are shared out, and their sums added in order.
real sum_long_run(const real* in, int64_t count) {
  constexpr int64_t pieces = 64;
  double sums[pieces];
  const int64_t length = (count + pieces - 1) / pieces;
  parallel_for(pieces, std::max<int64_t>(1, elementwise_grain / length), [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t first = std::min(piece * length, count);
      sums[piece] = sum_run(in + first, std::min(length, count - first));
    }
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return static_cast<real>(total);
}

/// body(o, first column, width) over (outer, blocks of columns), split among the threads.
template <class Body>
void column_blocks(int64_t outer, int64_t middle, int64_t inner, const Body& body) {
  const int64_t blocks = (inner + columns - 1) / columns;
  parallel_for(outer * blocks, unit_grain(middle * std::min(inner, columns)), [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t first = unit % blocks * columns;
      body(unit / blocks, first, std::min(columns, inner - first));
    }
  });
}

void sum_columns(real* out, const real* in, int64_t middle, int64_t stride, int64_t width) {
  double total[columns] = {};
  real sum[columns];
  for (int64_t first = 0; first < middle; first += block) {
    std::fill_n(sum, width, real{0});
    for (int64_t m = first; m < std::min(first + block, middle); ++m)
      for (int64_t i = 0; i < width; ++i) sum[i] += in[m * stride + i];
    for (int64_t i = 0; i < width; ++i) total[i] += sum[i];
  }
  for (int64_t i = 0; i < width; ++i) out[i] = static_cast<real>(total[i]);
}

}  // namespace

void sum_middle(real* out, const real* in, int64_t outer, int64_t middle, int64_t inner) {
  if (inner == 1 && outer == 1) {
    out[0] = sum_long_run(in, middle);
  } else if (inner == 1) {
    parallel_for(outer, unit_grain(middle), [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) out[o] = sum_run(in + o * middle, middle);
    });
  } else {
    column_blocks(outer, middle, inner, [&](int64_t o, int64_t first, int64_t width) {
      sum_columns(out + o * inner + first, in + o * middle * inner + first, middle, inner, width);
    });
  }
}

}  // namespace capstan::CAPSTAN_PRECISION::kernels
