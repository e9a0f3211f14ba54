// How fast this machine multiplies in the two formats of train.precision.
#pragma once

#include <cstdint>

namespace capstan {

/// Operations per second of the three products of affine maps, with the rounding that bf16 needs.
struct ProductRates {
  double float32 = 0, bf16 = 0;  // bf16 is 0 where it was not measured
};

/// y = x W^T for x: (rows, in) and W: (out, in), forward and both gradients.
struct AffineMap {
  int64_t rows = 0, in = 0, out = 0;
  double operations() const {
    return 6 * static_cast<double>(rows) * static_cast<double>(in) * static_cast<double>(out);
  }
};

/// Measures both formats in turn, each several times, and takes the medians. `copies`: so many threads compute the map
/// at the same time, each its own; with 1 all threads compute one. Takes a few tenths of a second: of a large map, a
/// part is measured. bf16 is measured if the CPU has instructions for it.
ProductRates measure_rates(const AffineMap& map, int copies);

}  // namespace capstan
