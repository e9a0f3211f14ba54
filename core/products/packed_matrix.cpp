// PackedMatrix: threads share panels in the same way for packing and for products, so that a thread packs what it will
// read. In 8 bits, the scales of outputs precede the panels. round_matrix() must round as packing does: `capstan eval`
// judges weights of fewer bits by it. tests/core/products/test_packed_matrix.cpp.
#include "core/products/packed_matrix.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "core/base/bf16.hpp"
#include "core/base/error.hpp"
#include "core/base/sizes.hpp"
#include "core/kernels/activation.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/kernels/gemv.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// Multiply-adds of a piece below which a second thread costs more than it brings.
constexpr int64_t piece_work = 16384;

template <class Packed>
int64_t panel_grain(int64_t rows, int64_t in) {
  return std::max<int64_t>(1, piece_work / std::max<int64_t>(1, rows * in * kernels::gemv_panel<Packed>));
}

constexpr size_t alignment = 64;

template <class Packed>
size_t packed_bytes(int64_t out, int64_t in) {
  return static_cast<size_t>(kernels::gemv_panels<Packed>(out) * in * kernels::gemv_words<Packed>) * sizeof(Packed);
}

size_t scale_bytes(int64_t out) { return round_up(static_cast<size_t>(out) * sizeof(real), alignment); }

/// Bytes of a packed weight, with its scales.
size_t stored_bytes(int64_t out, int64_t in, DecodeWeights storage) {
  switch (storage) {
    case DecodeWeights::float32:
      return packed_bytes<real>(out, in);
    case DecodeWeights::bf16:
      return packed_bytes<kernels::Bf16Pair>(out, in);
    case DecodeWeights::int8:
      return scale_bytes(out) + packed_bytes<kernels::Int8Quad>(out, in);
  }
  return 0;
}

/// 16 MB less the 64 bytes that the pool adds: a whole number of huge pages together.
constexpr size_t block_bytes = (size_t{16} << 20) - 64;

}  // namespace

PackedMemory::Place PackedMemory::take(size_t bytes) {
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
  switch (storage_) {
    case DecodeWeights::float32:
      return body(static_cast<real*>(packed_.data()));
    case DecodeWeights::bf16:
      return body(static_cast<kernels::Bf16Pair*>(packed_.data()));
    case DecodeWeights::int8: {
      char* const begin = static_cast<char*>(packed_.data());
      return body(reinterpret_cast<kernels::Int8Quad*>(begin + scale_bytes(out_)));
    }
  }
}

PackedMatrix::PackedMatrix(const Array& weight, DecodeWeights storage, PackedMemory& memory) : storage_(storage) {
  check(weight.rank() == 2, "packed_matrix: a weight of shape {} is not a matrix", weight.shape());
  out_ = weight.dim(0), in_ = weight.dim(1);
  packed_ = memory.take(stored_bytes(out_, in_, storage));
  // Each thread packs the panels that it will read.
  with_weights([&](auto* packed) {
    using Packed = std::remove_pointer_t<decltype(packed)>;
    parallel_for(kernels::gemv_panels<Packed>(out_), panel_grain<Packed>(1, in_), [&](int64_t begin, int64_t end) {
      if constexpr (std::is_same_v<Packed, kernels::Int8Quad>)
        kernels::gemv_pack(weight.data(), out_, in_, begin, end, packed, scales());
      else
        kernels::gemv_pack(weight.data(), out_, in_, begin, end, packed);
    });
  });
}

void round_matrix(real* weight, int64_t out, int64_t in, DecodeWeights storage) {
  if (storage == DecodeWeights::float32) return;
  for (int64_t row = 0; row < out; ++row, weight += in) {
    const real scale = storage == DecodeWeights::int8 ? kernels::int8_scale(weight, in) : real{0};
    for (int64_t k = 0; k < in; ++k)
      if (storage == DecodeWeights::bf16)
        weight[k] = static_cast<real>(to_float(to_bf16(static_cast<float>(weight[k]))));
      else
        weight[k] = scale > 0 ? std::nearbyint(weight[k] / scale) * scale : scale;
  }
}

void PackedMatrix::multiply(const real* x, int64_t rows, const real* bias, Activation activation, real* y) const {
  const kernels::GemvPass pass{rows, in_, out_, x, bias, y, storage_ == DecodeWeights::int8 ? scales() : nullptr};
  with_weights([&](const auto* packed) {
    using Packed = std::remove_const_t<std::remove_pointer_t<decltype(packed)>>;
    constexpr int64_t panel = kernels::gemv_panel<Packed>;
    parallel_for(kernels::gemv_panels<Packed>(out_), panel_grain<Packed>(rows, in_), [&](int64_t begin, int64_t end) {
      kernels::gemv(packed, pass, begin, end);
      if (activation == Activation::none) return;
      const int64_t first = begin * panel, columns = std::min(end * panel, out_) - first;
      for (int64_t row = 0; row < rows; ++row)
        kernels::activation_forward({activation, 1, columns}, y + row * out_ + first, nullptr, y + row * out_ + first);
    });
  });
}

}  // namespace capstan::CAPSTAN_PRECISION
