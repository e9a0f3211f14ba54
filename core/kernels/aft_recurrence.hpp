// The state (m, D, R) of AFT-simple in registers, for a group of places that have a key per channel.
#pragma once

#include "core/kernels/aft_scan.hpp"
#include "core/kernels/simd.hpp"

CAPSTAN_BEGIN
namespace kernels {

template <class Group>
class AftRecurrence {
 public:
  AftRecurrence(const Group& group, const AftState& state) : group_(group), state_(state) {
    for (int i = 0; i < Group::size; ++i) {
      maximum_[i] = group.places[i].load(state.maximum);
      weight_[i] = group.places[i].load(state.weight);
      average_[i] = group.places[i].load(state.average);
    }
  }

  /// Takes in one token at place i of the group; returns its gate e^(K - m) / D.
  simd::Batch advance(int i, const simd::Batch& k, const simd::Batch& v) {
    const simd::Batch one(1);
    // One of e^(m - m') and e^(K - m') is 1, the other e^-|K - m|.
    const simd::Batch small = xsimd::exp(-xsimd::abs(k - maximum_[i]));
    const auto rises = k > maximum_[i];
    const simd::Batch beta = xsimd::select(rises, one, small);
    weight_[i] = xsimd::select(rises, small, one) * weight_[i] + beta;
    maximum_[i] = xsimd::max(maximum_[i], k);
    const simd::Batch gate = beta / weight_[i];
    average_[i] = average_[i] + gate * (v - average_[i]);
    return gate;
  }

  const simd::Batch& average(int i) const { return average_[i]; }

  /// Back to memory.
  void store() const {
    for (int i = 0; i < Group::size; ++i) {
      group_.places[i].store(state_.maximum, maximum_[i]);
      group_.places[i].store(state_.weight, weight_[i]);
      group_.places[i].store(state_.average, average_[i]);
    }
  }

 private:
  Group group_;
  AftState state_;
  simd::Batch maximum_[Group::size], weight_[Group::size], average_[Group::size];
};

/// Registers that advance together: whole cache lines of every token, and chains enough to hide the exp and the
/// quotient.
constexpr int aft_group_size = 4;

}  // namespace kernels
CAPSTAN_END
