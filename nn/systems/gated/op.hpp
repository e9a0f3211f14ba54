// The steps between the projections of a gated attention unit and its attention. Hua et al. 2022, arXiv 2202.10447.
// Called by GatedUnit and RelativeBias; tests/nn/systems/gated/test_op.cpp holds each to its composed form.
#pragma once

#include <optional>
#include <vector>

#include "core/autograd/tape.hpp"
#include "core/fused/rotary.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// Groups of consecutive columns after SiLU, as separate outputs.  packed: (..., sum of widths) -> (..., width_p) each.
/// One pass; the pullback makes one gradient for all columns and saves `packed` only. Throws std::invalid_argument when
/// the widths do not add up.
std::vector<Var> split_silu(const Var& packed, const std::vector<int64_t>& widths);

/// C views of shared features: y_c = gain_c * z + offset_c, turned by rotary positions where `turn` is given.
/// z: (B, T, Z), gain and offset: (C, Z), positions: (B, T) -> C times (B, T, Z). One pass; saves z; the gradients of
/// gain and offset are sums in a fixed order. Throws std::invalid_argument naming the shapes.
std::vector<Var> offset_scale(const Var& z, const Var& gain, const Var& offset, const Ids& positions,
                              const std::optional<RotaryOptions>& turn = std::nullopt);

/// A bias of distances from rotary positions: b_d = sum over pairs p of even_p cos(w_p d) + odd_p sin(w_p d) with
/// w_p = base^(-p / P).  even, odd: (P) -> (1, 2N - 1), b_d at N - 1 + d for |d| < N = length. O(N P) time; saves
/// nothing. Throws std::invalid_argument naming the shapes.
Var rotary_series(const Var& even, const Var& odd, int64_t length, double base);

}  // namespace capstan::CAPSTAN_PRECISION
