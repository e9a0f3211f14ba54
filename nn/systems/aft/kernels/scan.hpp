// AFT-simple over one document, for a block of channels: channels in SIMD lanes, time outermost. Called by
// nn/systems/aft/scan.cpp and, for one token, by Aft::step().
#pragma once

#include "nn/systems/aft/kernels/decode.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

/// Causal: continues `state`, with a key per channel, over `length` tokens: a gated moving average, one exp per key,
///   m' = max(m, K),  D' = e^(m - m') D + e^(K - m'),  g = e^(K - m') / D',  R' = R + g (V - R),  Y = sigmoid(Q) R'.
/// D >= 1 from the first token on, so there is no epsilon and no 0/0. `y` has `y_stride` elements from token to
/// token.
void aft_scan(const AftInput& in, int64_t length, int64_t channels, const AftState& state, real* y, int64_t y_stride);

/// The g and R of the same tokens, (length, channels) each, for the pullback; `state` is continued too.
void aft_gates(const AftInput& in, int64_t length, int64_t channels, const AftState& state, real* gate, real* average);

/// What the pullback carries from a token to those before it, (channels) each: (1 - g) B and (1 - g) C; 0 at the end.
struct AftReverse {
  real *b, *c;
};

/// Pullback of aft_scan over `length` tokens, whose g and R aft_gates gave, without any exp of keys: with H = dY
/// sigmoid(Q), from the last token back,
///   B_t = H_t + (1 - g_{t+1}) B_{t+1},  C_t = H_t R_t + (1 - g_{t+1}) C_{t+1},  dV = g B,  dK = g (V B - C).
/// `dy` has `dy_stride` elements from token to token. `out` may be `in`.
void aft_scan_backward(const AftInput& in, int64_t length, int64_t channels, const real* dy, int64_t dy_stride,
                       const real* gate, const real* average, const AftReverse& reverse, const AftGradient& out);

/// Bidirectional: average_c = sum_t softmax_t(K)_tc V_tc and logsum_c = log sum_t e^K_tc, both (channels).
void aft_pool(const AftInput& in, int64_t length, int64_t channels, real* logsum, real* average);
/// Y_t = sigmoid(Q_t) average.
void aft_pool_apply(const AftInput& in, int64_t length, int64_t channels, const real* average, real* y,
                    int64_t y_stride);
/// Pullback of both: with p = e^(K - logsum) and S = sum_t dY sigmoid(Q):  dV = p S,  dK = p (V - average) S.
void aft_pool_backward(const AftInput& in, int64_t length, int64_t channels, const real* dy, int64_t y_stride,
                       const real* logsum, const real* average, const AftGradient& out);

}  // namespace capstan::CAPSTAN_PRECISION::kernels
