// The element-wise parts of attention's tiles, between the matrix products. A tile holds logits transposed: a row per
// key and a column per query, so that the values of a query (maximum, sum, factors) fill one lane of a register
// and nothing is ever summed across them. Columns come in whole registers; those past the last query hold anything
// finite. Softmax logits are in base 2: the packed queries and the bias bring the factor log2 e. Called by
// AttentionTiles.
#pragma once

#include <cstdint>

#include "core/base/real.hpp"
#include "nn/systems/quadratic/kernels/attention_kernel.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

/// Columns of a tile are a multiple of this.
int64_t attention_column_granule();

/// The logits of some keys and queries, and which of them are visible.
struct AttentionTile {
  real* logits;  // (keys, columns), rows `stride` apart
  int64_t keys, columns, stride;
  int64_t diagonal;  // column c sees key r when c >= r + diagonal
  const real* bias;  // added to the logit of column c and key r: bias[c - r]; null: none
};

/// What is known of the queries (columns) of a softmax after some of their tiles.
struct AttentionRunning {
  real *maximum, *total;  // largest logit; sum of 2^(logit - maximum)
  real* decay;            // work memory
};

/// No key seen yet.
void attention_clear(const AttentionRunning& running, int64_t columns);

/// logits -> f(logits), exactly 0 where the query does not see the key; the softmax's without its denominator, relative
/// to the running maximum. Where that rises, the sums of earlier tiles, `sums` (width, columns) with the tile's stride,
/// are scaled down to it.
void attention_tile_weights(AttentionKernel kernel, const AttentionTile& tile, const AttentionRunning& running,
                            real* sums, int64_t width);

/// logits -> f(logits) as above and, in place, dweights -> dlogits. softmax: maximum is that of the whole row, and
/// dlogit = f (dweight - shift) with one `shift` per query.
void attention_tile_weights_backward(AttentionKernel kernel, const AttentionTile& tile, real* dweights,
                                     const real* maximum, const real* shift);

/// dbias[c - r] += dlogits of column c and key r.
void attention_add_diagonals(const AttentionTile& tile, const real* dlogits, real* dbias);

/// out (count, width) = factor_i * row i.
void attention_pack(const real* rows, int64_t stride, int64_t count, int64_t width, const real* factor, real* out);
/// out (width, columns) = the same transposed, rows `out_stride` apart; columns from `count` on are 0.
void attention_pack_transposed(const real* rows, int64_t stride, int64_t count, int64_t width, const real* factor,
                               int64_t columns, real* out, int64_t out_stride);
/// Row i of out, `out_stride` apart = factor_i * column i of in (width, count).
void attention_unpack_transposed(const real* in, int64_t stride, int64_t count, int64_t width, const real* factor,
                                 real* out, int64_t out_stride);

/// out_i = factor_i * (row i of a . row i of b).
void attention_row_products(const real* a, int64_t a_stride, const real* b, int64_t b_stride, int64_t count,
                            int64_t width, const real* factor, real* out);

}  // namespace capstan::CAPSTAN_PRECISION::kernels
