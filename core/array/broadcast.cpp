#include "core/array/broadcast.hpp"

#include <stdexcept>

#include "core/base/error.hpp"
#include "core/kernels/reduce.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// (outer, middle, inner) -> (outer, inner).
Array sum_middle(const Array& array, int64_t outer, int64_t middle, int64_t inner) {
  Array result(Shape{outer, inner});
  kernels::sum_middle(result.mutable_data(), array.data(), outer, middle, inner);
  return result;
}

}  // namespace

Array sum_to(const Array& array, const Shape& shape, const char* op) {
  const int missing = array.rank() - shape.rank();
  bool fits = missing >= 0;
  for (int axis = 0; fits && axis < shape.rank(); ++axis)
    fits = shape[axis] == array.dim(axis + missing) || shape[axis] == 1;
  if (!fits)
    throw std::logic_error(fmt::format("{}: a gradient of shape {} does not sum to {}", op, array.shape(), shape));
  Array result = array;
  const Shape full = array.shape();
  int64_t inner = 1;
  // From the last axis to the first; runs of summed axes go in one pass.
  for (int axis = full.rank() - 1; axis >= 0;) {
    const auto summed = [&](int a) { return a < missing || (shape[a - missing] == 1 && full[a] != 1); };
    if (!summed(axis)) {
      inner *= full[axis--];
      continue;
    }
    int64_t middle = 1;
    while (axis >= 0 && summed(axis)) middle *= full[axis--];
    result = sum_middle(result, full.product(0, axis + 1), middle, inner);
  }
  return result.reshape(shape);
}

}  // namespace capstan::CAPSTAN_PRECISION
