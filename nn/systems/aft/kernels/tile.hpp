// The element-wise parts of AFT's tiles, between the matrix products of AftTiles. A group is a run of `channels` value
// channels with their keys: one key per channel, or one key for the whole group (`shared_key`). "exp row" means the
// channels + keys columns [E V | E], E = e^(K - reference).
#pragma once

#include <cstdint>

#include "nn/systems/aft/kernels/decode.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

/// Continues a carry, the state (m, D, R), over `length` tokens, without outputs. `in.stride` may be
/// negative to walk backwards. maximum, weight: (keys()); average: (channels).
void aft_carry(const AftInput& in, int64_t length, const AftGroup& group, const AftState& state);

/// reference = max(reference, K_t) over `length` tokens.
void aft_key_maximum(const AftInput& in, int64_t length, const AftGroup& group, real* reference);

/// exp rows of `length` tokens into `rows`.
void aft_pack(const AftInput& in, int64_t length, const AftGroup& group, const real* reference, real* rows,
              int64_t row_stride);
/// The exp row of all tokens of a carry.
void aft_pack_carry(const AftState& carry, const AftGroup& group, const real* reference, real* row);

/// sums: `length` rows [sum E V | sum E] weighted by e^w. R = their quotient, Y = sigmoid(Q) R; the denominators are
/// kept. A denominator below `floor` means that the reference was too far from what this target sees: it is kept as 0
/// and its Y and R must be computed otherwise. Returns whether that happened.
bool aft_finish(const AftInput& in, int64_t length, const AftGroup& group, const real* sums, int64_t sum_stride,
                real floor, real* y, real* average, int64_t y_stride, real* denominator, int64_t denominator_stride);

/// With H = dY sigmoid(Q): writes dQ and the rows [P | -P R], P = H / denominator (0 where that is 0; summed over the
/// group for a shared key). Returns whether a denominator is 0.
bool aft_start_backward(const AftInput& in, int64_t length, const AftGroup& group, const real* dy, const real* average,
                        int64_t y_stride, const real* denominator, int64_t denominator_stride, real* dq,
                        int64_t dq_stride, real* rows, int64_t row_stride);

/// dV += E G_v,  dK += E (V G_v + G_k) for `length` tokens; `exp_rows` from aft_pack, `g` rows [G_v | G_k] (stride 0:
/// one row for all tokens).
void aft_scatter(const AftInput& in, int64_t length, const AftGroup& group, const real* exp_rows, int64_t exp_stride,
                 const real* g, int64_t g_stride, const AftGradient& out);

/// One row of weights: row[0 .. count) = e^(row - maximum).
void aft_softmax_weights(real* row, int64_t count, real maximum);

}  // namespace capstan::CAPSTAN_PRECISION::kernels
