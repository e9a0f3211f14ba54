#include "core/products/packed_matrix.hpp"

#include <algorithm>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/sizes.hpp"
#include "core/kernels/kernels.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/kernels/gemv.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// Multiply-adds of a piece below which a second thread costs more than it brings.
constexpr int64_t piece_work = 16384;

int64_t panel_grain(int64_t rows, int64_t in) {
  return std::max<int64_t>(1, piece_work / std::max<int64_t>(1, rows * in * kernels::gemv_panel));
}

/// With what the pool needs for itself, a whole number of huge pages.
constexpr size_t block_bytes = (size_t{16} << 20) - 64;

}  // namespace

PackedMemory::Place PackedMemory::take(size_t bytes) {
  constexpr size_t alignment = 64;
  bytes = round_up(bytes, alignment);
  if (used_ + bytes > size_) {
    size_ = std::max(bytes, block_bytes);
    block_ = Buffer(size_);
    used_ = 0;
  }
  return {block_, std::exchange(used_, used_ + bytes)};
}

template <class Body>
void PackedMatrix::with_weights(const Body& body) const {
  if (storage_ == DecodeWeights::bf16) return body(static_cast<kernels::Bf16Pair*>(packed_.data()));
  body(static_cast<real*>(packed_.data()));
}

PackedMatrix::PackedMatrix(const Array& weight, DecodeWeights storage, PackedMemory& memory) : storage_(storage) {
  check(weight.rank() == 2, "packed_matrix: a weight of shape {} is not a matrix", weight.shape());
  out_ = weight.dim(0), in_ = weight.dim(1);
  const int64_t panels = kernels::gemv_panels(out_);
  const size_t size = storage == DecodeWeights::bf16 ? sizeof(kernels::Bf16Pair) * kernels::gemv_panel / 2
                                                     : sizeof(real) * kernels::gemv_panel;
  packed_ = memory.take(static_cast<size_t>(panels * in_) * size);
  // Each thread packs the panels that it will read.
  with_weights([&](auto* packed) {
    parallel_for(panels, panel_grain(1, in_),
                 [&](int64_t begin, int64_t end) { kernels::gemv_pack(weight.data(), out_, in_, begin, end, packed); });
  });
}

void PackedMatrix::multiply(const real* x, int64_t rows, const real* bias, Activation activation, real* y) const {
  const kernels::GemvPass pass{rows, in_, out_, x, bias, y};
  with_weights([&](const auto* packed) {
    parallel_for(kernels::gemv_panels(out_), panel_grain(rows, in_), [&](int64_t begin, int64_t end) {
      kernels::gemv(packed, pass, begin, end);
      if (activation == Activation::none) return;
      const int64_t first = begin * kernels::gemv_panel, columns = std::min(end * kernels::gemv_panel, out_) - first;
      for (int64_t row = 0; row < rows; ++row)
        kernels::activation_forward({activation, 1, columns}, y + row * out_ + first, nullptr, y + row * out_ + first);
    });
  });
}

}  // namespace capstan::CAPSTAN_PRECISION
