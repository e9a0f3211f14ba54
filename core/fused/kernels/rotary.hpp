// Plane rotations of pairs of features.
// Loops over pointers, rows shared out to the threads: results depend neither on the number of threads nor on the width
// of registers (tests/core/fused, tests/models/portable_levels.cpp).
#pragma once

#include <cstdint>

#include "core/base/real.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

/// Which features of x turn, and by which angles.
struct RotaryPass {
  int64_t rows, heads, width;  // x: (rows, heads, width)
  int64_t pairs;               // rotated per head: the first 2 * pairs features
  bool interleaved;            // pair i is (2i, 2i + 1), else (i, i + pairs)
  const real *cosine, *sine;   // tables of rows of `pairs` values
  const int32_t* table_rows;   // (rows): which row of the tables serves which row of x
  int64_t turned_heads = 0;    // the first ones; 0: all
};

/// y = x with each pair (a, b) turned into (a c - b s, a s + b c); backwards with -s. y may be x.
void rotate(const RotaryPass& pass, bool backwards, const real* x, real* y);

/// One row of one head: pairs (a, b) of x into (a c - s b, a s + b c), with s = sign * sine. y may be x.
using RotateRow = void (*)(const real* x, const real* cosine, const real* sine, real sign, real* y, int64_t pairs);
RotateRow rotate_row(bool interleaved);

}  // namespace capstan::CAPSTAN_PRECISION::kernels
