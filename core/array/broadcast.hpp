// The inverse of broadcasting.
#pragma once

#include "core/array/array.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// Sums `array` over the axes along which `shape` was broadcast to array.shape(). Throws std::logic_error naming `op`
/// when `shape` does not broadcast to it.
Array sum_to(const Array& array, const Shape& shape, const char* op);

}  // namespace capstan::CAPSTAN_PRECISION
