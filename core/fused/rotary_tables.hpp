// Cosines and sines of rotary angles: what rotary(), the gated unit's ops (nn/systems/gated) and decoding
// (nn/layers/context) turn features by. tests/nn/systems/gated/test_op.cpp checks them.
#pragma once

#include "core/array/array.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// cos and sin of p * base^(-pair / pairs) for the positions p of a call, computed in double.
struct RotaryTables {
  Array cosine, sine;  // (table rows, pairs)
  Ids rows;            // (positions.size()): the table row of each position
};

/// Makes a row for each position from the lowest to the highest, which the sequences of a batch share; where that would
/// be more rows than there are positions, a row for each element of `positions`. A row depends on its position only, to
/// the bit.
RotaryTables rotary_tables(const Ids& positions, int64_t pairs, double base);

}  // namespace capstan::CAPSTAN_PRECISION
