// Rows of every kind that a mixer must tell apart.
#pragma once

#include <algorithm>
#include <vector>

#include "core/array/segments.hpp"

namespace capstan {

/// Rows of `length` tokens, row b with one document of lengths[b] tokens followed by padding.
inline Segments segments_of_lengths(const std::vector<int64_t>& lengths, int64_t length) {
  Ids ids = Ids::zeros(Shape{static_cast<int64_t>(lengths.size()), length});
  for (size_t row = 0; row < lengths.size(); ++row)
    std::fill_n(ids.mutable_data() + static_cast<int64_t>(row) * length, lengths[row], 1);
  return Segments(ids);
}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION::testing {

/// Right padding, left padding, two packed documents, a row of padding alone, a document of one token.
inline Segments ragged_segments(int64_t length) {
  Ids ids(Shape{4, length}, 0);
  int32_t* const id = ids.mutable_data();
  for (int64_t t = 0; t < length; ++t) {
    id[t] = t < length - 6 ? 1 : 0;
    id[length + t] = t < 3 ? 0 : 7;
    id[2 * length + t] = t < length / 2 ? 2 : t == length / 2 ? 5 : t < length - 2 ? 3 : 0;
  }
  return Segments(ids);
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
