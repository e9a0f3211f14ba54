// The mixing weights of gau, and of flash without its global part.
#pragma once

#include "tests/nn/mixer/mixing_weights.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

inline void check_gated(const MixerConfig& config, int64_t hidden, bool causal, bool prefixes = false) {
  const Subject s(config, causal, ragged_segments(40), prefixes);
  const Array packed = s.layer("to_uvz", s.x);
  const auto activated = [&](const Part& part) {
    const Array raw = columns(packed, part);
    return combined(raw, raw, [](real a, real) { return silu(a); });
  };
  const Array gate = activated({0, hidden}), values = activated({hidden, hidden});
  s.check(s.layer("to_out", product(gate, mixed(s.weights(0), values))), mixer_name(config));
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
