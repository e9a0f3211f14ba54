// Plain passes over contiguous memory, split among the threads.
// Loops over pointers: no shapes, no tape. A portable build has them once for each level of the CPU
// (core/machine/kernel_levels.hpp). Results depend neither on the number of threads nor on the width of registers:
// tests/core/products/float_in_order.cpp, tests/models/portable_levels.cpp.
#pragma once

#include <cstdint>

#include "core/base/bf16.hpp"
#include "core/base/real.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

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
/// out = to_bf16(in)
void round_to_bf16(Bf16* out, const float* in, int64_t count);

}  // namespace capstan::CAPSTAN_PRECISION::kernels
