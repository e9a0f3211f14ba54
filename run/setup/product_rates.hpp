// How fast this machine multiplies in the two formats of train.precision.
#pragma once

#include <cstdint>
#include <vector>

namespace capstan {

/// Operations per second of the three products of affine maps, with the rounding that bf16 needs.
struct ProductRates {
  double float32 = 0, bf16 = 0;  // bf16 is 0 where it was not measured
};

/// y = x W^T for x: (rows, in) and W: (out, in), forward and both gradients; `count` of them in a step.
struct AffineMap {
  int64_t rows = 0, in = 0, out = 0;
  double count = 1;
  double operations() const {
    return 6 * count * static_cast<double>(rows) * static_cast<double>(in) * static_cast<double>(out);
  }
};

/// Measures both formats in turn, each several times, and takes the medians. `copies`: so many threads compute the maps
/// at the same time, each its own; with 1 all threads compute one map. Takes a few tenths of a second for maps that
/// narrowed() has limited. bf16 is measured if the CPU has instructions for it.
ProductRates measure_rates(const std::vector<AffineMap>& maps, int copies);

/// The maps with most operations, as many as can be measured in a short time, of fewer rows or columns where they are
/// large: the rate of a product no longer depends on its size there.
std::vector<AffineMap> narrowed(std::vector<AffineMap> maps);

}  // namespace capstan
