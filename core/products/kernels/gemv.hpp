// Products of a weight matrix with a few rows of x, from weights packed once:
// the work of decoding, whose cost is to read the weights.
#pragma once

#include <cstdint>

#include "core/base/real.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

/// A packed weight (out, in) is stored in panels of 32 outputs, with zeros after the last one: for every input the
/// panel's weights side by side, so that a panel is read from front to back and no sum runs across a register.
constexpr int64_t gemv_panel = 32;
inline int64_t gemv_panels(int64_t out) { return (out + gemv_panel - 1) / gemv_panel; }

/// bf16: the upper halves of two floats, rounded to nearest, ties to even;
/// outputs i and i + 16 of a panel share a word.
struct Bf16Pair {
  uint32_t bits;  // the first output in the lower half
};

/// Packs the panels [first, last) of weight (out, in); `packed` is where the first panel of all begins.
void gemv_pack(const real* weight, int64_t out, int64_t in, int64_t first, int64_t last, real* packed);
void gemv_pack(const real* weight, int64_t out, int64_t in, int64_t first, int64_t last, Bf16Pair* packed);

struct GemvPass {
  int64_t rows, in, out;
  const real* x;     // (rows, in)
  const real* bias;  // (out) or null
  real* y;           // (rows, out)
};

/// y = x W^T + bias for the outputs of the panels [first, last), on the calling thread. An output is summed in the same
/// order whatever rows and panels it is computed with.
void gemv(const real* packed, const GemvPass& pass, int64_t first, int64_t last);
void gemv(const Bf16Pair* packed, const GemvPass& pass, int64_t first, int64_t last);

/// y = y + scale * x M.  x: (in), M: rows `stride` elements apart, y: (columns).
void row_times_matrix(const real* x, int64_t in, const real* matrix, int64_t stride, int64_t columns, real scale,
                      real* y);

}  // namespace capstan::CAPSTAN_PRECISION::kernels
