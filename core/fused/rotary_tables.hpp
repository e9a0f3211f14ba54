// Cosines and sines of rotary angles.
#pragma once

#include "core/array/array.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// cos and sin of p * base^(-pair / pairs) for the positions p of a call, computed in double.
struct RotaryTables {
  Array cosine, sine;  // (table rows, pairs)
  Ids rows;            // (positions.size()): the table row of each position
};

/// One table row per position between the lowest and the highest where these are no more than the positions (so that
/// the sequences of a batch share them), else one per position.
/// A position's values depend on nothing but the position.
RotaryTables rotary_tables(const Ids& positions, int64_t pairs, double base);

}  // namespace capstan::CAPSTAN_PRECISION
