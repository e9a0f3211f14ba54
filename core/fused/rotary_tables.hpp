// Cosines and sines of rotary angles.
#pragma once

#include "core/array/array.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// cos and sin of p * base^(-pair / pairs) for the positions p of a call, computed in double.
struct RotaryTables {
  Array cosine, sine;  // (table rows, pairs)
  Ids rows;            // (positions.size()): the table row of each position
};

/// A table row for each position from the lowest to the highest, which the sequences of a batch share. If these are
/// more than the given positions, a row for each of the latter. The values of a row depend on its position only.
RotaryTables rotary_tables(const Ids& positions, int64_t pairs, double base);

}  // namespace capstan::CAPSTAN_PRECISION
