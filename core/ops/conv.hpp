// Depthwise causal convolution along time.
#pragma once

#include "core/array/segments.hpp"
#include "core/autograd/tape.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// y[b, t, d] = sum over k of kernel[d, k] x[b, t - (K - 1) + k, d], with zeros before the start: the last tap is the
/// present token.  x: (B, T, D), kernel: (D, K) -> (B, T, D). dx[b, t, d] = sum over k of kernel[d, k] g[b, t + (K - 1)
/// - k, d];  dkernel[d, k] = sum over b, t of g[b, t, d] x[b, t - (K - 1) + k, d].
Var depthwise_causal_conv(const Var& x, const Var& kernel);
/// The same within each document: taps never reach into another one or into padding, and padding gives 0.
Var depthwise_causal_conv(const Var& x, const Var& kernel, const Segments& segments);

}  // namespace capstan::CAPSTAN_PRECISION
