// A token's channels are neighbours, so every step is a product of two contiguous rows. x's gradient is gathered by the
// token that receives it, that of the taps by blocks of channels over all tokens: no two threads write to one place.

#include "core/kernels/conv.hpp"
#include <algorithm>

#include "core/kernels/column_sums.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {
namespace {

constexpr int64_t block = 256;  // tokens whose sum joins the rest at once: keeps the rounding error down

void add_product(real* out, const real* a, const real* b, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) out[i] += a[i] * b[i];
}

/// body(t, row b * length + t) for all tokens, split among the threads.
template <class Body>
void for_tokens(const ConvSize& size, const Body& body) {
  parallel_each(size.batch * size.length, 1 + elementwise_grain / std::max<int64_t>(size.width * size.taps, 1),
                [&](int64_t row) { body(row % size.length, row); });
}

}  // namespace

void causal_conv(real* y, const real* x, const real* taps, const int32_t* reach, const ConvSize& size) {
  const int64_t width = size.width;
  for_tokens(size, [=](int64_t, int64_t row) {
    std::fill_n(y + row * width, width, real{0});
    const int64_t steps = std::min<int64_t>(size.taps, reach[row]);
    for (int64_t back = 0; back < steps; ++back)
      add_product(y + row * width, taps + (size.taps - 1 - back) * width, x + (row - back) * width, width);
  });
}

void causal_conv_grad_x(real* dx, const real* g, const real* taps, const int32_t* reach, const ConvSize& size) {
  const int64_t width = size.width;
  for_tokens(size, [=](int64_t t, int64_t row) {
    std::fill_n(dx + row * width, width, real{0});
    const int64_t steps = std::min(size.taps, size.length - t);
    for (int64_t back = 0; back < steps; ++back)
      if (back < reach[row + back])
        add_product(dx + row * width, taps + (size.taps - 1 - back) * width, g + (row + back) * width, width);
  });
}

void causal_conv_grad_taps(real* dtaps, const real* g, const real* x, const int32_t* reach, const ConvSize& size) {
  const int64_t width = size.width, tokens = size.batch * size.length;
  for_column_blocks(size.taps, tokens, width, [=](int64_t back, int64_t first, int64_t count) {
    real total[summed_columns] = {};
    for (int64_t start = 0; start < tokens; start += block) {
      real sum[summed_columns] = {};
      for (int64_t row = start; row < std::min(start + block, tokens); ++row)
        if (back < reach[row]) add_product(sum, g + row * width + first, x + (row - back) * width + first, count);
      for (int64_t i = 0; i < count; ++i) total[i] += sum[i];
    }
    std::copy_n(total, count, dtaps + (size.taps - 1 - back) * width + first);
  });
}

}  // namespace capstan::CAPSTAN_PRECISION::kernels
