#include "core/kernels/column_sums.hpp"

#include "core/kernels/simd.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

void column_sums(const real* in, ColumnSums out, int64_t rows, int64_t columns) {
  if (out.data == nullptr) return;
  for_rows_with_sums(
      rows, row_grain(columns), columns,
      [&](int64_t begin, int64_t end, real* sums) {
        for (int64_t row = begin; row < end; ++row)
          simd::sweep(columns, [&](auto at) { at.store(sums, at.load(sums) + at.load(in + row * columns)); });
      },
      [&](const real* sums) { out.add(sums, columns); });
}

}  // namespace capstan::CAPSTAN_PRECISION::kernels
