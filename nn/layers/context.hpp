// What modules are told besides activations: Context in forward(), DecodeContext in the steps of a generation. Made by
// train/steps, train/evaluation and models/stack, and passed to every module, so that no module has a state.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "core/array/batch.hpp"
#include "core/array/segments.hpp"
#include "core/autograd/var.hpp"
#include "core/base/random.hpp"
#include "core/fused/rotary.hpp"
#include "core/fused/rotary_tables.hpp"
#include "core/products/packed_matrix.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// An argument of every forward call: visibility of tokens, training or evaluation, and the counters of randomness.
/// Modules have no mode and no state.
struct Context {
  Segments segments;      // of the batch (B, T)
  bool training = false;  // dropout on?
  uint64_t step = 0;      // the optimizer's step; part of every dropout counter
  Ids examples = {};      // (B): index of each row's example in the epoch's order; empty where dropout is off
  /// The beginnings of documents that a causal model reads in both directions (nn/mixer/mixer.hpp): segments in which
  /// all later tokens are padding. No rows in models that read causally only.
  Segments prefixes = {};

  /// Evaluation of B rows of T visible tokens.
  static Context evaluation(int64_t batch, int64_t length) { return {Segments::full(batch, length)}; }
  /// Evaluation of a batch.
  static Context evaluation(const Batch& batch) { return {Segments(batch.segment_ids)}; }
};

/// The weights of a model, packed for decoding, and the rotary angles of the current positions. A weight is packed when
/// a step first multiplies by it, and the copy is kept: make a new DecodeContext when weights change. For one thread.
/// tests/models/test_decode.cpp holds that a text has the same bits alone and in company.
class DecodeContext {
 public:
  explicit DecodeContext(DecodeWeights storage = DecodeWeights::float32) : storage_(storage) {}

  /// act(x W^T + b), as linear() without gradients.  x: (..., in) -> (..., out).
  /// Throws std::invalid_argument naming the shapes.
  Array linear(const Array& x, const Var& weight, const Var& bias = Var(), Activation activation = Activation::none);

  /// rotary_tables() of these arguments, made once for consecutive layers with equal ones; valid until the next call.
  const RotaryTables& rotary(const Ids& positions, int64_t pairs, double base);

 private:
  struct Packed {
    Array weight;  // kept alive, so that no other array gets its address
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
