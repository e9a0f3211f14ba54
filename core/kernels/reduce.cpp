#include "core/kernels/reduce.hpp"

#include <algorithm>

#include "core/machine/parallel.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace kernels {
namespace {

constexpr int64_t grain = 16384;  // elements; below it a second thread costs more than it brings
constexpr int64_t block = 512;    // terms summed in working precision before they join the rest
constexpr int64_t columns = 64;   // handled together where the reduced axis is not the last

/// Pieces for parallel_for of units that each touch `size` elements.
int64_t unit_grain(int64_t size) { return 1 + grain / std::max<int64_t>(size, 1); }

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
  parallel_for(pieces, std::max<int64_t>(1, grain / length), [&](int64_t begin, int64_t end) {
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

/// `better(a, b)`: is a to replace b?
template <class Better>
void best_middle(real* out, int32_t* where, const real* in, int64_t outer, int64_t middle, int64_t inner,
                 const Better& better) {
  column_blocks(outer, middle, inner, [&](int64_t o, int64_t first, int64_t width) {
    const real* const source = in + o * middle * inner + first;
    real* const best = out + o * inner + first;
    int32_t* const index = where + o * inner + first;
    for (int64_t i = 0; i < width; ++i) best[i] = source[i], index[i] = 0;
    for (int64_t m = 1; m < middle; ++m) {
      const real* const row = source + m * inner;
      for (int64_t i = 0; i < width; ++i) {
        const bool replace = best[i] == best[i] && (row[i] != row[i] || better(row[i], best[i]));
        best[i] = replace ? row[i] : best[i];
        index[i] = replace ? static_cast<int32_t>(m) : index[i];
      }
    }
  });
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

void max_middle(real* out, int32_t* where, const real* in, int64_t outer, int64_t middle, int64_t inner) {
  best_middle(out, where, in, outer, middle, inner, [](real a, real b) { return a > b; });
}

void min_middle(real* out, int32_t* where, const real* in, int64_t outer, int64_t middle, int64_t inner) {
  best_middle(out, where, in, outer, middle, inner, [](real a, real b) { return a < b; });
}

}  // namespace kernels
}  // namespace capstan::CAPSTAN_PRECISION
