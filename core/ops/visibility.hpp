// Which tokens see which, as a matrix: for the composed forms of mixers, which define them by primitives.
#pragma once

#include "core/array/segments.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// 1 where the query (row) sees the key (column), else 0: (B, T, T).
Array visibility(const Segments& segments, bool causal);

}  // namespace capstan::CAPSTAN_PRECISION
