// What the layers of a generation share.
#pragma once

#include <unordered_map>

#include "core/autograd/var.hpp"
#include "core/ops/rotary_tables.hpp"
#include "core/products/packed_matrix.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// The weights of a model, packed for decoding, and the angles of the current position. It packs a weight when a step
/// first multiplies by it and keeps that copy: make a new one when weights have changed. Not for two threads at once.
class DecodeContext {
 public:
  explicit DecodeContext(DecodeWeights storage = DecodeWeights::float32) : storage_(storage) {}

  /// act(x W^T + b), as linear() without gradients.  x: (..., in) -> (..., out). Throws std::invalid_argument naming
  /// the shapes.
  Array linear(const Array& x, const Var& weight, const Var& bias = Var(), Activation activation = Activation::none);

  /// As rotary_tables(); layers that ask for the same one after the other share them.
  const RotaryTables& rotary(const Ids& positions, int64_t pairs, double base);

 private:
  struct Packed {
    Array weight;  // held, so that no other array takes its place in memory
    PackedMatrix matrix;
  };
  struct Angles {
    std::vector<int32_t> positions;
    int64_t pairs = 0;
    double base = 0;
    RotaryTables tables;
  };

  DecodeWeights storage_;
  PackedMemory memory_;
  std::unordered_map<const real*, Packed> packed_;
  Angles angles_;
};

}  // namespace capstan::CAPSTAN_PRECISION
