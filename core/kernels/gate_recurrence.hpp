// The weights of a softmax over a growing set of tokens, in registers: the causal scans of aft-simple
// (nn/systems/aft/kernels) and of Fastformer's pools. Finite for any finite keys: "extreme keys" in
// tests/nn/systems/aft/test_op_invariants.cpp.
#pragma once

#include "core/kernels/simd.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

/// Running maximum m of the keys and sum D of e^(K - m), read from memory and written back by store(): one exp per
/// token, D >= 1 from the first one on.
template <class Group>
class GateRecurrence {
 public:
  GateRecurrence(const Group& group, real* maximum, real* weight)
      : group_(group), to_maximum_(maximum), to_weight_(weight) {
    for (int i = 0; i < Group::size; ++i) {
      maximum_[i] = group.places[i].load(maximum);
      weight_[i] = group.places[i].load(weight);
    }
  }

  /// Takes in the key of one token at place i of the group; returns its gate e^(K - m) / D.
  simd::Batch advance(int i, const simd::Batch& k) {
    const simd::Batch one(1);
    // One of e^(m - m') and e^(K - m') is 1, the other e^-|K - m|.
    const simd::Batch small = simd::exp(-xsimd::abs(k - maximum_[i]));
    const auto rises = k > maximum_[i];
    const simd::Batch beta = xsimd::select(rises, one, small);
    weight_[i] = xsimd::select(rises, small, one) * weight_[i] + beta;
    maximum_[i] = xsimd::max(maximum_[i], k);
    return beta / weight_[i];
  }

  /// Writes m and D back to where they were read from.
  void store() const {
    for (int i = 0; i < Group::size; ++i) {
      group_.places[i].store(to_maximum_, maximum_[i]);
      group_.places[i].store(to_weight_, weight_[i]);
    }
  }

 private:
  Group group_;
  real *to_maximum_, *to_weight_;
  simd::Batch maximum_[Group::size], weight_[Group::size];
};

}  // namespace capstan::CAPSTAN_PRECISION::kernels
