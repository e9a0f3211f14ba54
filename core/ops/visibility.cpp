#include "core/ops/visibility.hpp"

namespace capstan::CAPSTAN_PRECISION {

Array visibility(const Segments& segments, bool causal) {
  const int64_t batch = segments.batch(), length = segments.length();
  Array mask = Array::zeros(Shape{batch, length, length});
  real* const visible = mask.mutable_data();
  for (const Segments::Span& span : segments.spans())
    for (int64_t t = span.begin; t < span.end; ++t)
      for (int64_t s = span.begin; s < (causal ? t + 1 : span.end); ++s)
        visible[(span.row * length + t) * length + s] = 1;
  return mask;
}

}  // namespace capstan::CAPSTAN_PRECISION
