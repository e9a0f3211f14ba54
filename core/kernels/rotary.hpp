// Plane rotations of pairs of features.
#pragma once

#include <cstdint>

#include "core/real.hpp"

CAPSTAN_BEGIN
namespace kernels {

struct RotaryPass {
  int64_t rows, heads, width;  // x: (rows, heads, width)
  int64_t pairs;               // rotated per head: the first 2 * pairs features
  bool interleaved;            // pair i is (2i, 2i + 1), else (i, i + pairs)
  const real *cosine, *sine;   // tables of rows of `pairs` numbers
  const int32_t* table_rows;   // (rows): which row of the tables serves which row of x
};

/// y = x with each pair (a, b) turned into (a c - b s, a s + b c); backwards with -s. y may be x.
void rotate(const RotaryPass& pass, bool backwards, const real* x, real* y);

}  // namespace kernels
CAPSTAN_END
