// Rows of every kind that a mixer must tell apart.
#pragma once

#include "core/array/segments.hpp"
#include "core/base/real.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace testing {

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

}  // namespace testing
}  // namespace capstan::CAPSTAN_PRECISION
