// The floating-point mode of the calling thread: the register MXCSR on x86-64, FPCR on ARM64.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace capstan {

#if defined(__x86_64__)
inline uint64_t float_mode() { return _mm_getcsr(); }
inline void set_float_mode(uint64_t mode) { _mm_setcsr(static_cast<uint32_t>(mode)); }
constexpr uint64_t flushing_mode = 0x8040;  // FTZ and DAZ: results and operands
#else
inline uint64_t float_mode() { return __builtin_aarch64_get_fpcr(); }
inline void set_float_mode(uint64_t mode) { __builtin_aarch64_set_fpcr(static_cast<uint32_t>(mode)); }
constexpr uint64_t flushing_mode = 1 << 24;  // the bit FZ
#endif

/// Denormals become zero, for the calling thread: e^-90 would otherwise cost a hundred times more than e^-80.
inline void flush_denormals() { set_float_mode(float_mode() | flushing_mode); }

}  // namespace capstan
