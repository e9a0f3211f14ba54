#include "nn/systems/aft/kernels/state.hpp"

#include <limits>

namespace capstan::CAPSTAN_PRECISION::kernels {

void aft_state_clear(const AftState& state, int64_t keys, int64_t channels) {
  for (int64_t key = 0; key < keys; ++key) {
    state.maximum[key] = std::numeric_limits<real>::lowest();
    state.weight[key] = 0;
  }
  for (int64_t c = 0; c < channels; ++c) state.average[c] = 0;
}

}  // namespace capstan::CAPSTAN_PRECISION::kernels
