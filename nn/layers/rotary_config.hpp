// Rotary positions as a part of the configuration of attention, gau and flash. Su et al. 2021, arXiv 2104.09864.
#pragma once

#include "core/fused/rotary.hpp"

namespace capstan {

struct RotaryConfig {
  bool enabled = true;
  double base = 10000;  // no key: pair i of n rotates by base^(-i/n) per position
  RotaryPairs pairs = RotaryPairs::halves;

  RotaryOptions options() const { return {base, pairs}; }
};

/// The keys rotary and rotary_pairs of a mixer with rotary positions.
template <class Fields>
void describe_rotary(Fields& f, RotaryConfig& c) {
  f("rotary", c.enabled, any(),
    "rotate queries and keys by their positions, at any length; without it, set `positions`");
  f("rotary_pairs", c.pairs, any(),
    "which features are rotated together: halves (i and i + n, as in Llama) or interleaved (2i and 2i + 1; the paper)");
}

/// Adds a problem of the key `rotary` unless `features` features form pairs.
void check_rotary(const RotaryConfig& config, int64_t features, Problems& problems);

}  // namespace capstan
