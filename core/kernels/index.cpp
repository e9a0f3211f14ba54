#include "core/kernels/index.hpp"

#include <algorithm>
#include <cstring>

#include "core/machine/parallel.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {
namespace {

constexpr int64_t columns = 64;  // of `inner`, summed by one thread

/// body(a, first column, width): sums into one place stay on one thread.
template <class Body>
void column_blocks(int64_t outer, int64_t count, int64_t inner, const Body& body) {
  if (inner == 0) return;
  const int64_t blocks = (inner + columns - 1) / columns;
  const int64_t unit = std::max<int64_t>(1, count * std::min(inner, columns));
  parallel_for(outer * blocks, 1 + elementwise_grain / unit, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % blocks * columns;
      body(i / blocks, first, std::min(columns, inner - first));
    }
  });
}

}  // namespace

void gather(real* out, const real* x, const int32_t* index, int64_t outer, int64_t extent, int64_t count,
            int64_t inner) {
  parallel_for(outer * count, 1 + elementwise_grain / std::max<int64_t>(inner, 1), [=](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const real* const from = x + (row / count * extent + index[row % count]) * inner;
      std::memcpy(out + row * inner, from, static_cast<size_t>(inner) * sizeof(real));
    }
  });
}

void scatter_add(real* out, const real* in, const int32_t* index, int64_t outer, int64_t extent, int64_t count,
                 int64_t inner) {
  column_blocks(outer, count, inner, [=](int64_t a, int64_t first, int64_t width) {
    for (int64_t i = 0; i < count; ++i) {
      real* const to = out + (a * extent + index[i]) * inner + first;
      const real* const from = in + (a * count + i) * inner + first;
      for (int64_t c = 0; c < width; ++c) to[c] += from[c];
    }
  });
}

}  // namespace capstan::CAPSTAN_PRECISION::kernels
