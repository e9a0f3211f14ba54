// Products of a weight matrix with a few rows of x, from weights packed once: the work of decoding, whose cost is to
// read the weights. Called by core/products/packed_matrix and, for a row, by FLASH's decoding. The order of an output's
// sum decides the bits of logits, and so texts: tests/core/products/test_packed_matrix.cpp checks that neither other
// rows nor threads change it.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/base/real.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

/// Two weights in bf16: the upper halves of floats, rounded to nearest, ties to even. Outputs i and i + 16 of a panel
/// share a word.
struct Bf16Pair {
  uint32_t bits;  // the first output in the lower half
};
/// Four weights in 8 bits: whole numbers from -127 to 127, the weights divided by the scale of their output, which is
/// the largest absolute weight of the output divided by 127. Outputs i, i + 16, i + 32 and i + 48 of a panel share a
/// word.
struct Int8Quad {
  int32_t bits;  // the first output in the lowest byte
};

/// A packed weight (out, in) is stored in panels of 2 (in 8 bits: 4) sides of 16 outputs, with zeros after the last
/// one: for every input the panel's weights side by side, so that a panel is read from front to back and no sum runs
/// across a register.
constexpr int64_t gemv_side = 16;
template <class Packed>
constexpr int64_t gemv_sides = std::is_same_v<Packed, Int8Quad> ? 4 : 2;
template <class Packed>
constexpr int64_t gemv_panel = gemv_side* gemv_sides<Packed>;
/// How many elements of type Packed a panel has for each input.
template <class Packed>
constexpr int64_t gemv_words = std::is_same_v<Packed, real> ? gemv_panel<Packed> : gemv_side;
template <class Packed>
int64_t gemv_panels(int64_t out) {
  return (out + gemv_panel<Packed> - 1) / gemv_panel<Packed>;
}

/// The scale of an output whose weights, `count` in `row`, are stored in 8 bits; NaN where a weight is not finite.
real int8_scale(const real* row, int64_t count);

/// Packs the panels [first, last) of weight (out, in); `packed` is where the first panel of all begins.
void gemv_pack(const real* weight, int64_t out, int64_t in, int64_t first, int64_t last, real* packed);
void gemv_pack(const real* weight, int64_t out, int64_t in, int64_t first, int64_t last, Bf16Pair* packed);
/// Packs panels in 8 bits; scales: (out), of which those of the panels [first, last) are written.
void gemv_pack(const real* weight, int64_t out, int64_t in, int64_t first, int64_t last, Int8Quad* packed,
               real* scales);

/// Operands of gemv().
struct GemvPass {
  int64_t rows, in, out;
  const real* x;                 // (rows, in)
  const real* bias;              // (out) or null
  real* y;                       // (rows, out)
  const real* scales = nullptr;  // (out), of weights in 8 bits; else null
};

/// y = x W^T + bias for the outputs of the panels [first, last), on the calling thread. An output is summed in the same
/// order whatever rows and panels it is computed with.
void gemv(const real* packed, const GemvPass& pass, int64_t first, int64_t last);
void gemv(const Bf16Pair* packed, const GemvPass& pass, int64_t first, int64_t last);
void gemv(const Int8Quad* packed, const GemvPass& pass, int64_t first, int64_t last);

/// y = y + scale * x M.  x: (in), M: rows `stride` elements apart, y: (columns).
void row_times_matrix(const real* x, int64_t in, const real* matrix, int64_t stride, int64_t columns, real scale,
                      real* y);

}  // namespace capstan::CAPSTAN_PRECISION::kernels
