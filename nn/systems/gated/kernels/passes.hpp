// Element-wise passes of the gated attention unit: the kernels of nn/systems/gated/op.cpp and gated_linear.cpp, and of
// the decode steps of gau and flash.
#pragma once

#include <cstdint>

#include "core/fused/kernels/rotary.hpp"
#include "core/kernels/column_sums.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

/// One group of columns of a packed matrix and the matrix (rows, width) that belongs to it.
struct SiluPart {
  int64_t width;
  real* out;       // forward
  const real* dy;  // backward; null: zeros
};

/// out of part p = silu(its columns of packed (rows, columns)); the parts' columns follow each other.
void split_silu(const real* packed, const SiluPart* parts, int64_t count, int64_t rows, int64_t columns);
/// dpacked = silu'(packed) * dy of the part the column belongs to.
void split_silu_backward(const real* packed, const SiluPart* parts, int64_t count, real* dpacked, int64_t rows,
                         int64_t columns);

/// z: (rows, width); gain and offset: (copies, width). `turn` gives rows, width and the pairs to turn (0: none).
struct OffsetScalePass {
  const real *z, *gain, *offset;
  int64_t copies;
  RotaryPass turn;
};

/// outs[c] = turn(gain_c * z + offset_c), each (rows, width).
void offset_scale(const OffsetScalePass& pass, real* const* outs);
/// With d_c = dys[c] turned back (a null dys[c]: zeros): dz = sum_c gain_c * d_c, the column sums of z * d_c into dgain
/// and those of d_c into doffset. dz may be null.
void offset_scale_backward(const OffsetScalePass& pass, const real* const* dys, real* dz, ColumnSums dgain,
                           ColumnSums doffset);

/// out = gate * x
void gate(const real* gate, const real* x, real* out, int64_t count);
/// dgate = d * x, dx = d * gate; dgate may be gate and dx may be x.
void gate_backward(const real* d, const real* gate, const real* x, real* dgate, real* dx, int64_t count);

}  // namespace capstan::CAPSTAN_PRECISION::kernels
