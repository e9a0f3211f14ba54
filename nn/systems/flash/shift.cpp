// The op shift_tokens: moves half of the features by one token within each document, and the gradient back.
// tests/nn/systems/flash/test_shift.cpp.
#include "nn/systems/flash/shift.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/machine/profile.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// Moves the first half of the features by one token within each document, later or (for the gradient) earlier.
Array shifted(const Array& x, const Segments& segments, bool later) {
  const int64_t width = x.dim(2), moved = shifted_features(width);
  Array y = Array::zeros(x.shape());
  real* const out = y.mutable_data();
  for (const Segments::Span& span : segments.spans()) {
    const int64_t first = (span.row * segments.length() + span.begin) * width;
    for (int64_t t = 0; t < span.length(); ++t) {
      const int64_t source = later ? t - 1 : t + 1;
      if (source >= 0 && source < span.length())
        std::copy_n(x.data() + first + source * width, moved, out + first + t * width);
      std::copy_n(x.data() + first + t * width + moved, width - moved, out + first + t * width + moved);
    }
  }
  return y;
}

}  // namespace

Var shift_tokens(const Var& x, const Segments& segments) {
  const ProfileSpan span;
  check(x.rank() == 3 && x.dim(0) == segments.batch() && x.dim(1) == segments.length(),
        "shift_tokens: x of shape {} does not fit segments ({}, {})", x.shape(), segments.batch(), segments.length());
  return make_var("shift_tokens", shifted(x.value(), segments, true), {x},
                  [segments](const Array& dy, const Needs&) -> Grads { return {shifted(dy, segments, false)}; });
}

}  // namespace capstan::CAPSTAN_PRECISION
