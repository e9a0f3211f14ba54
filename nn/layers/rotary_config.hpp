// Rotary positions as a part of the configuration of attention, gau and flash. Su et al. 2021, arXiv 2104.09864.
#pragma once

#include "core/fused/rotary.hpp"

namespace capstan {

struct RotaryConfig {
  bool enabled = true;
  int64_t dims = 0;
  double base = 10000;
  RotaryPairs pairs = RotaryPairs::halves;

  RotaryOptions options() const { return {base, dims, pairs}; }
};

/// The keys rotary and rotary_base of a mixer with rotary positions.
template <class Fields>
void describe_rotary(Fields& f, RotaryConfig& c) {
  f("rotary", c.enabled, any(),
    "rotate queries and keys by their positions, at any length; without it, set `positions`");
  f("rotary_base", c.base, greater(0),
    "pair i of n rotates by base^(-i/n) per position: a larger base distinguishes larger distances");
}
/// The keys rotary_dims and rotary_pairs in the map `compat` of a mixer with rotary positions.
template <class Fields>
void describe_rotary_compat(Fields& f, RotaryConfig& c) {
  f("rotary_dims", c.dims, width_from(0), "number of features to rotate; must be even; 0 = all (FLASH-pytorch: 32)");
  f("rotary_pairs", c.pairs, any(),
    "which features are rotated together: halves (i and i + n; most public weights) or interleaved (2i and 2i + 1; the "
    "paper)");
}

/// Adds a problem of the key `compat.rotary_dims` unless config.dims of `features` features can be rotated.
void check_rotary(const RotaryConfig& config, int64_t features, Problems& problems);

}  // namespace capstan
