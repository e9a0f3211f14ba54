#include "core/ops_gated_composed.hpp"

#include "core/ops_math.hpp"
#include "core/ops_shape.hpp"

CAPSTAN_BEGIN

std::vector<Var> split_silu_composed(const Var& packed, const std::vector<int64_t>& widths) {
  return split(silu(packed), -1, widths);
}

std::vector<Var> offset_scale_composed(const Var& z, const Var& gain, const Var& offset, const Ids& positions,
                                       const std::optional<RotaryOptions>& turn) {
  std::vector<Var> views;
  for (int64_t c = 0; c < gain.dim(0); ++c) {
    const Var view = z * slice(gain, 0, c, c + 1) + slice(offset, 0, c, c + 1);
    views.push_back(turn ? rotary(view, positions, *turn) : view);
  }
  return views;
}

CAPSTAN_END
