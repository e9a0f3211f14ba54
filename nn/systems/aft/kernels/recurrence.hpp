// The recurrent state (m, D, R) of AFT-simple, in registers: for its scan and for the carries of tiles.
#pragma once

#include "core/kernels/gate_recurrence.hpp"
#include "nn/systems/aft/kernels/decode.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

/// AFT-simple, for a group of places that have a key per channel.
template <class Group>
class AftRecurrence {
 public:
  AftRecurrence(const Group& group, const AftState& state)
      : group_(group), state_(state), gates_(group, state.maximum, state.weight) {
    for (int i = 0; i < Group::size; ++i) average_[i] = group.places[i].load(state.average);
  }

  /// Takes in one token at place i of the group; returns its gate.
  simd::Batch advance(int i, const simd::Batch& k, const simd::Batch& v) {
    const simd::Batch gate = gates_.advance(i, k);
    average_[i] = average_[i] + gate * (v - average_[i]);
    return gate;
  }

  const simd::Batch& average(int i) const { return average_[i]; }

  /// Writes the state back to where it was read from.
  void store() const {
    gates_.store();
    for (int i = 0; i < Group::size; ++i) group_.places[i].store(state_.average, average_[i]);
  }

 private:
  Group group_;
  AftState state_;
  GateRecurrence<Group> gates_;
  simd::Batch average_[Group::size];
};

/// Registers that advance together: whole cache lines of every token,
/// and chains enough to hide the exp and the quotient.
constexpr int aft_group_size = 4;

}  // namespace capstan::CAPSTAN_PRECISION::kernels
