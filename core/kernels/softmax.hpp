// Softmax of single rows, on the calling thread. `mask` (null: none) holds one number per entry; entries where it is 0
// take no part and get 0, whatever they hold. A row without an entry above -infinity is 0 throughout.
#pragma once

#include <cstdint>

#include "core/base/real.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace kernels {

/// out_i = e^(x_i - m) / sum_j e^(x_j - m), m = max x
void softmax_row(real* out, const real* x, const real* mask, int64_t count);
/// dx = y (g - sum(g y))
void softmax_row_grad(real* dx, const real* g, const real* y, int64_t count);
/// out_i = x_i - m - log sum_j e^(x_j - m)
void log_softmax_row(real* out, const real* x, const real* mask, int64_t count);
/// dx = g - e^y sum(g), over the entries that take part
void log_softmax_row_grad(real* dx, const real* g, const real* y, const real* mask, int64_t count);
/// m + log sum_j e^(x_j - m); -infinity for no entries. +infinity and NaN spread.
real logsumexp_row(const real* x, int64_t count);
/// dx_i = g e^(x_i - y), y = logsumexp(x); 0 where y is -infinity
void logsumexp_row_grad(real* dx, real g, real y, const real* x, int64_t count);

}  // namespace kernels
}  // namespace capstan::CAPSTAN_PRECISION
