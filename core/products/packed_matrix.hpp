// A weight matrix as decoding reads it: DecodeContext (nn/layers) packs each weight once per state.
// tests/core/products/test_packed_matrix.cpp compares every storage with three loops.
#pragma once

#include <vector>

#include "core/array/array.hpp"
#include "core/kernels/activation.hpp"

namespace capstan {

/// How decoding stores weights: as they are, or rounded to bf16 (8 bits of mantissa) or int8 (whole numbers times a
/// scale per output), half or a quarter of the bytes to read for every token. Sums and states are float32 in any case.
enum class DecodeWeights { float32, bf16, int8 };

inline std::vector<EnumName<DecodeWeights>> enum_names(DecodeWeights) {
  return {{DecodeWeights::float32, "float32"}, {DecodeWeights::bf16, "bf16"}, {DecodeWeights::int8, "int8"}};
}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

/// Storage for packed matrices, one after the other in large blocks. Large blocks get huge pages, which single matrices
/// below 4 MB would not; weights too large for the caches are read up to a seventh faster from huge pages.
class PackedMemory {
 public:
  struct Place {
    Buffer block;  // held by its matrices, too
    size_t offset;
    void* data() const { return static_cast<char*>(block.data()) + offset; }
  };
  /// 64-byte-aligned, uninitialised. Throws OutOfMemory.
  Place take(size_t bytes);

 private:
  Buffer block_;
  size_t used_ = 0, size_ = 0;
};

/// A packed copy of weight (out, in), for products with a few rows. Later changes of the weight do not change it.
class PackedMatrix {
 public:
  /// Throws std::invalid_argument for a weight that is not a matrix.
  PackedMatrix(const Array& weight, DecodeWeights storage, PackedMemory& memory);

  int64_t in() const { return in_; }
  int64_t out() const { return out_; }
  /// y = act(x W^T + bias).  x: (rows, in), bias: (out) or null, y: (rows, out). A row has the
  /// same bits alone and among others, with any number of threads.
  void multiply(const real* x, int64_t rows, const real* bias, Activation activation, real* y) const;

 private:
  /// Calls body(pointer to the packed weights), whose type depends on storage_. For int8, the scales precede the
  /// weights.
  template <class Body>
  void with_weights(const Body& body) const;

  real* scales() const { return static_cast<real*>(packed_.data()); }

  DecodeWeights storage_;
  int64_t out_, in_;
  PackedMemory::Place packed_;
};

/// Rounds each element of a matrix (out, in) to the value that PackedMatrix stores for it.
void round_matrix(real* weight, int64_t out, int64_t in, DecodeWeights storage);

}  // namespace capstan::CAPSTAN_PRECISION
