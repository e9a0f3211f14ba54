// Loops over pointers that the ops are made of: no shapes, no tape. A portable build has them once for each level of
// the CPU (core/machine/kernel_levels.hpp), so they take no types whose layout depends on it. Results depend neither on
// the number of threads nor on the width of registers: tests/core/products/float_in_order.cpp,
// tests/models/portable_levels.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/real.hpp"
#include "core/base/small_floats.hpp"
#include "core/config/schema.hpp"
#include "core/kernels/column_sums.hpp"

namespace capstan {

// The point-wise non-linearities that configurations and ops know by name.

/// none x; relu max(x, 0); squared_relu max(x, 0)^2; gelu x Phi(x) with the exact normal distribution function;
/// silu x sigmoid(x); sigmoid 1 / (1 + e^-x); tanh.
enum class Activation { none, relu, squared_relu, gelu, silu, sigmoid, tanh };

inline std::vector<EnumName<Activation>> enum_names(Activation) {
  return {{Activation::none, "none"}, {Activation::relu, "relu"}, {Activation::squared_relu, "squared_relu"},
          {Activation::gelu, "gelu"}, {Activation::silu, "silu"}, {Activation::sigmoid, "sigmoid"},
          {Activation::tanh, "tanh"}};
}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION::kernels {

// Plain passes over contiguous memory, split among the threads.

void fill(real* out, int64_t count, real value);
void copy(real* out, const real* in, int64_t count);
/// out += in
void add_into(real* out, const real* in, int64_t count);
/// out += in, in = 0
void take_into(real* out, real* in, int64_t count);
/// out += factor * in
void add_scaled(real* out, const real* in, int64_t count, real factor);
/// out = factor * in
void scale(real* out, const real* in, int64_t count, real factor);
/// Is no element infinite or NaN?
bool all_finite(const real* in, int64_t count);

/// Functions whose bits no library decides about.
enum class Function { exp, log, sigmoid, tanh };
/// out = f(in), on the calling thread; out may be in.
void apply(Function function, real* out, const real* in, int64_t count);

/// a . b, on the calling thread.
real dot(const real* a, const real* b, int64_t count);

// Activations with bias over the rows of a matrix, and column sums.

/// How a row of pre becomes a row of out with `columns` elements: act(pre) or, if gated, act(g) * h for a row [g | h]
/// of 2 * columns elements. The bias, as wide as a row of pre, is added first; null: none.
struct ActivationPass {
  Activation activation;
  int64_t rows, columns;
  bool gated = false;
};

/// out may be pre where it is not gated.
void activation_forward(const ActivationPass& pass, const real* pre, const real* bias, real* out);

/// dpre = dout * act'(pre), or gated [dout * h * act'(g) | dout * act(g)], its column sums into dbias, and, unless
/// `out` is null, out again. dpre may be pre, or dout where it is as wide; out may be dout, or pre where it is as wide.
void activation_backward(const ActivationPass& pass, const real* pre, const real* bias, const real* dout, real* dpre,
                         real* out, ColumnSums dbias);

// Moving elements without changing them, and sums into given places, split among the threads. Every element is summed
// in the order of the index: results do not depend on the number of threads.

/// out[r * out_stride + i] = in[r * in_stride + i] for r < rows, i < length.
void copy_blocks(real* out, int64_t out_stride, const real* in, int64_t in_stride, int64_t rows, int64_t length);

/// The row-major block `out` of `rank` <= 6 extents; moving along its axis a moves `strides[a]` elements in `in`. Axes
/// of extent 1 are not allowed, and one axis must have stride 1.
void permute(real* out, const real* in, int rank, const int64_t* extents, const int64_t* strides);

/// out[a, i, c] = x[a, index[i], c];  x: (outer, extent, inner), index: (count), out: (outer, count, inner)
void gather(real* out, const real* x, const int32_t* index, int64_t outer, int64_t extent, int64_t count,
            int64_t inner);
/// out[a, index[i], c] += in[a, i, c]
void scatter_add(real* out, const real* in, const int32_t* index, int64_t outer, int64_t extent, int64_t count,
                 int64_t inner);

// Depthwise causal convolution. x, g, y: (batch, length, width), taps: (size.taps, width) with the tap of the present
// token last; reach (batch, length): how many tokens, itself included, a token may look back at.

struct ConvSize {
  int64_t batch, length, width, taps;
};

/// y[b, t] = sum over back < min(size.taps, reach[b, t]) of taps[size.taps - 1 - back] * x[b, t - back]
void causal_conv(real* y, const real* x, const real* taps, const int32_t* reach, const ConvSize& size);
/// dx[b, t] = sum over back < size.taps with back < reach[b, t + back] of taps[size.taps - 1 - back] * g[b, t + back]
void causal_conv_grad_x(real* dx, const real* g, const real* taps, const int32_t* reach, const ConvSize& size);
/// dtaps[size.taps - 1 - back] = sum over b, t with back < reach[b, t] of g[b, t] * x[b, t - back]
void causal_conv_grad_taps(real* dtaps, const real* g, const real* x, const int32_t* reach, const ConvSize& size);

// Random numbers by counters (Philox): dropout, and normally distributed numbers.

/// What decides about one row: Philox key, and the counter words that do not change along the row.
struct DropoutRow {
  uint32_t key[2];
  uint32_t example, position, step;
};

/// out[c] = word >= threshold ? scale * in[c] : 0, where word is number c % 4 of Philox 4x32-10 at the counter
/// (example, position, c / 4, step). On the calling thread; out may be in.
void dropout_row(real* out, const real* in, int64_t count, const DropoutRow& row, uint32_t threshold, real scale);

/// A block of weights that queries have for keys, a row per key, rows `stride` apart.
struct DropoutBlock {
  uint32_t key[2];
  uint32_t example, step;
  uint32_t first_key, first_query;  // of the block
  int64_t keys, columns, stride;
};

/// Dropout of every weight of a block, in place: word = number i % 4 of Philox at the counter (example, key, i / 4,
/// step) for query i.
void dropout_block(real* rows, const DropoutBlock& block, uint32_t threshold, real scale);

/// out[i] = stddev * the normal number that RandomStream(key, first + i) begins with, up to rounding in double; `key`
/// is philox_key of its key. On the calling thread.
void normal_numbers(real* out, int64_t count, uint64_t key, uint64_t first, double stddev);

// Floats to bf16, split among the threads.

/// out = to_bf16(in)
void round_to_bf16(Bf16* out, const float* in, int64_t count);

}  // namespace capstan::CAPSTAN_PRECISION::kernels
