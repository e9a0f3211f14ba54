// The inverse of broadcasting.
#pragma once

#include "core/array.hpp"

CAPSTAN_BEGIN

/// Sums `array` over the axes along which `shape` was broadcast to array.shape(). Throws std::logic_error naming `op`
/// when `shape` does not broadcast to it.
Array sum_to(const Array& array, const Shape& shape, const char* op);

CAPSTAN_END
