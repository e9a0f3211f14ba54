// What every forward call gets in addition to the activations.
#pragma once

#include "core/array/segments.hpp"
#include "core/base/random.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// Visibility of tokens, training or evaluation, and the counters of randomness. Modules have no mode and no state.
struct Context {
  Segments segments;      // of the batch (B, T)
  bool training = false;  // dropout on?
  uint64_t step = 0;      // the optimizer's step; part of every dropout counter
  Ids examples = {};      // (B): index of each row's example in the epoch's order; empty where dropout is off
  /// In causal models that read the beginning of a document in both directions: the segments of these beginnings alone,
  /// with all later tokens as padding (nn/mixer/prefix.hpp). In other models it has no rows.
  Segments prefixes = {};

  /// Evaluation of B rows of T visible tokens.
  static Context evaluation(int64_t batch, int64_t length) { return {Segments::full(batch, length)}; }
};

}  // namespace capstan::CAPSTAN_PRECISION
