// Sums of table rows per bag (the forward pass of core/fused/bag.cpp), and the gradients of those rows. Each thread
// writes rows of its own and adds in the order of places, so sums do not depend on threads.
// tests/core/fused/test_bag.cpp.

#include "core/fused/kernels/bag.hpp"
#include <algorithm>

#include "core/machine/parallel.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

void bag_sums(real* out, const real* table, const int32_t* ids, const int64_t* offsets, const real* factors,
              int64_t bags, int64_t width) {
  const int64_t elements = (offsets[bags] / std::max<int64_t>(bags, 1) + 1) * std::max<int64_t>(width, 1);  // of a bag
  parallel_each(bags, 1 + elementwise_grain / elements, [=](int64_t bag) {
    real* const sum = out + bag * width;
    std::fill_n(sum, width, real{0});
    for (int64_t i = offsets[bag]; i < offsets[bag + 1]; ++i) {
      const real* const row = table + int64_t{ids[i]} * width;
#pragma omp simd
      for (int64_t c = 0; c < width; ++c) sum[c] += row[c];
    }
#pragma omp simd
    for (int64_t c = 0; c < width; ++c) sum[c] *= factors[bag];
  });
}

void bag_scatter(real* out, const real* in, const BagPlace* places, const int64_t* runs, int64_t run_count,
                 const real* factors, int64_t width) {
  parallel_each(run_count, 1 + elementwise_grain / std::max<int64_t>(width, 1), [=](int64_t run) {
    real* const row = out + run * width;
    std::fill_n(row, width, real{0});
    for (int64_t i = runs[run]; i < runs[run + 1]; ++i) {
      const real factor = factors[places[i].bag];
      const real* const from = in + int64_t{places[i].bag} * width;
#pragma omp simd
      for (int64_t c = 0; c < width; ++c) row[c] += factor * from[c];
    }
  });
}

}  // namespace capstan::CAPSTAN_PRECISION::kernels
