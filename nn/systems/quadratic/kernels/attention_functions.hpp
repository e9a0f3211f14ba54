// The attention kernels that need no normalisation and are no activation, on SIMD registers, with their slopes. For the
// tiles and the decode step beside this.
#pragma once

#include "core/kernels/activation_functions.hpp"
#include "nn/systems/quadratic/kernels/attention_kernel.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

/// (1 + erf((x - mean) / (deviation sqrt 2))) / 2 = Phi((x - mean) / deviation).
struct Laplace {
  static simd::Batch standardised(const simd::Batch& x) {
    return (x - simd::Batch(real(laplace_mean))) * simd::Batch(real(1 / laplace_deviation));
  }
  static simd::Batch value(const simd::Batch& x) { return Gelu::normal(standardised(x)).probability; }
  static ValueAndSlope both(const simd::Batch& x) {
    const Gelu::Normal n = Gelu::normal(standardised(x));
    const simd::Batch peak(real(0.398942280401432677939946059934381868 / laplace_deviation));
    return {n.probability, peak * n.bell};
  }
};

}  // namespace capstan::CAPSTAN_PRECISION::kernels
