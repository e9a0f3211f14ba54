// Depthwise causal convolution along time.
#pragma once

#include "core/array/segments.hpp"
#include "core/autograd/var.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// y[b, t, d] = sum over k of kernel[d, k] x[b, t - (K - 1) + k, d], with zeros before the start of the token's
/// document: the last tap is the present token. Padding gives 0.  x: (B, T, D), kernel: (D, K) -> (B, T, D).
/// dx[b, t, d] = sum over k of kernel[d, k] g[b, t + (K - 1) - k, d];
/// dkernel[d, k] = sum over b, t of g[b, t, d] x[b, t - (K - 1) + k, d], both within a document.
Var depthwise_causal_conv(const Var& x, const Var& kernel, const Segments& segments);

}  // namespace capstan::CAPSTAN_PRECISION
