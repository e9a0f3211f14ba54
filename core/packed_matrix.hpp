// A weight matrix as decoding reads it.
#pragma once

#include <vector>

#include "core/activation.hpp"
#include "core/array.hpp"

namespace capstan {

/// How decoding stores weights: as they are, or rounded to bf16 (8 bits of mantissa), half the bytes to read for every
/// token. Sums and states are float32 either way.
enum class DecodeWeights { float32, bf16 };

inline std::vector<EnumName<DecodeWeights>> enum_names(DecodeWeights) {
  return {{DecodeWeights::float32, "float32"}, {DecodeWeights::bf16, "bf16"}};
}

}  // namespace capstan

CAPSTAN_BEGIN

/// weight (out, in), packed for products with a few rows: a copy, which no later change of the weight reaches.
class PackedMatrix {
 public:
  /// Throws std::invalid_argument for a weight that is not a matrix.
  PackedMatrix(const Array& weight, DecodeWeights storage);

  int64_t in() const { return in_; }
  int64_t out() const { return out_; }
  /// y = act(x W^T + bias).  x: (rows, in), bias: (out) or null, y: (rows, out). Equal bits for any number of threads.
  void multiply(const real* x, int64_t rows, const real* bias, Activation activation, real* y) const;

 private:
  /// body(pointer to the packed weights) with the type that belongs to the storage.
  template <class Body>
  void with_weights(const Body& body) const;

  DecodeWeights storage_;
  int64_t out_, in_;
  Buffer packed_;
};

CAPSTAN_END
