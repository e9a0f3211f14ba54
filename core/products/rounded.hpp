// Products within an op whose affine maps are in bf16: each operand is there in floats and, where its products are in
// bf16, rounded beside that. For the tiles of attention and the chunks of FLASH; affine maps have their own
// (core/fused/linear_products.hpp). Templates, so that nothing is rounded where `real` is double.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "core/base/bf16.hpp"
#include "core/kernels/elementwise.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/gemm.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// Are products in bf16, if that is `wanted`? Only where the CPU has instructions for it.
inline bool rounds_operands(bool wanted) {
  return std::is_same_v<real, float> && wanted && bf16_backend() == Bf16Backend::onednn;
}

/// An operand, and the same rounded; without data where the product is in floats.
struct Operand {
  MatrixView exact;
  Bf16View rounded;

  bool is_rounded() const { return rounded.data != nullptr; }
  /// The part that begins at an element.
  Operand from(int64_t element) const {
    return {{exact.data + element, exact.stride, exact.transpose},
            {is_rounded() ? rounded.data + element : nullptr, rounded.stride, rounded.transpose}};
  }
  Operand transposed() const {
    return {{exact.data, exact.stride, Transpose::yes}, {rounded.data, rounded.stride, Transpose::yes}};
  }
};

/// C (m, n) = A B, or C + A B; in bf16 where both operands are rounded.
template <class T>
void multiply(int64_t m, int64_t n, int64_t k, const Operand& a, const Operand& b, T* c, int64_t c_stride, bool add) {
  if constexpr (std::is_same_v<T, float>)
    if (a.is_rounded() && b.is_rounded()) return gemm(m, n, k, a.rounded, b.rounded, c, c_stride, add ? 1.0F : 0.0F);
  gemm(m, n, k, a.exact, b.exact, c, c_stride, 1, add ? 1 : 0);
}

/// to = factor * from, rounded.
template <class T>
void round_elements(Bf16* to, const T* from, int64_t count, T factor = 1) {
  if constexpr (std::is_same_v<T, float>) {
    if (factor == 1) return kernels::round_to_bf16(to, from, count);
    constexpr int64_t piece = 1024;
    float scaled[piece];
    for (int64_t at = 0; at < count; at += piece) {
      const int64_t size = std::min(piece, count - at);
      for (int64_t i = 0; i < size; ++i) scaled[i] = factor * from[at + i];
      kernels::round_to_bf16(to + at, scaled, size);
    }
  }
}

/// `count` rows of `width` elements, `stride` apart, rounded: (count, width).
template <class T>
Bf16Array rounded_rows(const T* rows, int64_t stride, int64_t count, int64_t width) {
  Bf16Array result(Shape{count, width});
  Bf16* const to = result.mutable_data();
  parallel_each(count, 64, [&](int64_t row) { round_elements(to + row * width, rows + row * stride, width); });
  return result;
}

}  // namespace capstan::CAPSTAN_PRECISION
