// Depthwise causal convolution. x, g, y: (batch, length, width), taps: (size.taps, width) with the tap of the present
// token last; reach (batch, length): how many tokens, itself included, a token may look back at.
#pragma once

#include <cstdint>

#include "core/base/real.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

struct ConvSize {
  int64_t batch, length, width, taps;
};

/// y[b, t] = sum over back < min(size.taps, reach[b, t]) of taps[size.taps - 1 - back] * x[b, t - back]
void causal_conv(real* y, const real* x, const real* taps, const int32_t* reach, const ConvSize& size);
/// dx[b, t] = sum over back < size.taps with back < reach[b, t + back] of taps[size.taps - 1 - back] * g[b, t + back]
void causal_conv_grad_x(real* dx, const real* g, const real* taps, const int32_t* reach, const ConvSize& size);
/// dtaps[size.taps - 1 - back] = sum over b, t with back < reach[b, t] of g[b, t] * x[b, t - back]
void causal_conv_grad_taps(real* dtaps, const real* g, const real* x, const int32_t* reach, const ConvSize& size);

}  // namespace capstan::CAPSTAN_PRECISION::kernels
