// Exact quotients and square roots of floats on ARM64. xsimd 8.1 takes those of 32-bit ARM, which approximate: other
// bits than everywhere else. The build includes this before every source (cmake/targets.cmake), since xtensor's
// expressions use them, too, and the whole program must have one of each.
#pragma once

#include <xsimd/xsimd.hpp>

namespace xsimd::kernel {

template <>
inline batch<float, neon64> div<neon64>(batch<float, neon64> const& a, batch<float, neon64> const& b,
                                        requires_arch<neon>) noexcept {
  return vdivq_f32(a, b);
}

template <>
inline batch<float, neon64> sqrt<neon64>(batch<float, neon64> const& x, requires_arch<neon>) noexcept {
  return vsqrtq_f32(x);
}

}  // namespace xsimd::kernel
