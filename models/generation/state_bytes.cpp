#include "models/generation/state_bytes.hpp"

namespace capstan::CAPSTAN_PRECISION {

int64_t bytes_per_sequence(const DecodeState& state, int64_t position) {
  int64_t elements = 0;
  for (const auto& layer : state.layers) elements += layer->elements(position);
  return elements * static_cast<int64_t>(sizeof(real));
}

}  // namespace capstan::CAPSTAN_PRECISION
