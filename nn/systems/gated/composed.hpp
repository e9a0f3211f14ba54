// The ops of op.hpp as compositions of primitives: what they mean, and what tests compare them with.
#pragma once

#include <optional>
#include <vector>

#include "core/autograd/var.hpp"
#include "core/fused/rotary.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// silu, then split.
std::vector<Var> split_silu_composed(const Var& packed, const std::vector<int64_t>& widths);
/// gain_c * z + offset_c, then rotary, for each c.
std::vector<Var> offset_scale_composed(const Var& z, const Var& gain, const Var& offset, const Ids& positions,
                                       const std::optional<RotaryOptions>& turn = std::nullopt);

/// Products with the tables of cosines and sines.
Var rotary_series_composed(const Var& even, const Var& odd, int64_t length, double base);

}  // namespace capstan::CAPSTAN_PRECISION
