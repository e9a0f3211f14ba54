// Which tokens see which, and clearing rows of padding.
#pragma once

#include <algorithm>

#include "core/array/array.hpp"
#include "core/array/segments.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// 1 where the query (row) sees the key (column), else 0: (B, T, T). For the composed forms of mixers.
inline Array visibility(const Segments& segments, bool causal) {
  const int64_t length = segments.length();
  Array mask = Array::zeros(Shape{segments.batch(), length, length});
  for (const Segments::Span& span : segments.spans())
    for (int64_t t = span.begin; t < span.end; ++t)
      std::fill(mask.mutable_data() + (span.row * length + t) * length + span.begin,
                mask.mutable_data() + (span.row * length + t) * length + (causal ? t + 1 : span.end), real{1});
  return mask;
}

/// Sets the rows of (B, T, width) elements that belong to padding tokens to 0; touches nothing else.
inline void clear_padding(real* rows, int64_t width, const Segments& segments) {
  if (segments.all_valid()) return;
  const int64_t tokens = segments.ids().size();
  for (int64_t token = 0; token < tokens; ++token)
    if (segments.ids()[token] == 0) std::fill_n(rows + token * width, width, real{0});
}

}  // namespace capstan::CAPSTAN_PRECISION
