// Rows of padding in activations.
#pragma once

#include <algorithm>

#include "core/fwd.hpp"
#include "core/segments.hpp"

CAPSTAN_BEGIN

/// Sets the rows of (B, T, width) numbers that belong to padding tokens to `value`; touches nothing else.
inline void fill_padding(real* rows, int64_t width, const Segments& segments, real value) {
  if (segments.all_valid()) return;
  const int64_t tokens = segments.ids().size();
  for (int64_t token = 0; token < tokens; ++token)
    if (segments.ids()[token] == 0) std::fill_n(rows + token * width, width, value);
}

CAPSTAN_END
