// Sums of table rows.
// Loops over pointers, rows shared out to the threads: results depend neither on the number of threads nor on the width
// of registers (tests/core/fused, tests/models/portable_levels.cpp).
#pragma once

#include <cstdint>

#include "core/base/real.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

/// out[b] = factors[b] * sum of table[ids[i]] over i in [offsets[b], offsets[b + 1]);
/// table: (rows, width), out: (bags, width)
void bag_sums(real* out, const real* table, const int32_t* ids, const int64_t* offsets, const real* factors,
              int64_t bags, int64_t width);

/// One row of a table in a bag: places of a row are adjacent.
struct BagPlace {
  int32_t row, bag;
};
/// out[r] = sum of factors[bag] * in[bag] over the places [runs[r], runs[r + 1]), which are those of one row.
void bag_scatter(real* out, const real* in, const BagPlace* places, const int64_t* runs, int64_t run_count,
                 const real* factors, int64_t width);

}  // namespace capstan::CAPSTAN_PRECISION::kernels
