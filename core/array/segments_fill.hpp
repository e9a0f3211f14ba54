// Rows of padding in activations.
#pragma once

#include <algorithm>

#include "core/array/segments.hpp"
#include "core/base/real.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// Sets the rows of (B, T, width) elements that belong to padding tokens to `value`; touches nothing else.
inline void fill_padding(real* rows, int64_t width, const Segments& segments, real value) {
  if (segments.all_valid()) return;
  const int64_t tokens = segments.ids().size();
  for (int64_t token = 0; token < tokens; ++token)
    if (segments.ids()[token] == 0) std::fill_n(rows + token * width, width, value);
}

}  // namespace capstan::CAPSTAN_PRECISION
