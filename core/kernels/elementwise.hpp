// Plain passes over contiguous memory, split among the threads.
#pragma once

#include <cstdint>

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
bool all_finite(const real* in, int64_t count);

}  // namespace capstan::CAPSTAN_PRECISION::kernels
