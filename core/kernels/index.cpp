#include "core/kernels/index.hpp"

#include <algorithm>
#include <cstring>

#include "core/kernels/column_sums.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

void gather(real* out, const real* x, const int32_t* index, int64_t outer, int64_t extent, int64_t count,
            int64_t inner) {
  parallel_each(outer * count, 1 + elementwise_grain / std::max<int64_t>(inner, 1), [=](int64_t row) {
    const real* const from = x + (row / count * extent + index[row % count]) * inner;
    std::memcpy(out + row * inner, from, static_cast<size_t>(inner) * sizeof(real));
  });
}

void scatter_add(real* out, const real* in, const int32_t* index, int64_t outer, int64_t extent, int64_t count,
                 int64_t inner) {
  for_column_blocks(outer, count, inner, [=](int64_t a, int64_t first, int64_t width) {
    for (int64_t i = 0; i < count; ++i) {
      real* const to = out + (a * extent + index[i]) * inner + first;
      const real* const from = in + (a * count + i) * inner + first;
      for (int64_t c = 0; c < width; ++c) to[c] += from[c];
    }
  });
}

}  // namespace capstan::CAPSTAN_PRECISION::kernels
