#include "nn/systems/gated/composed.hpp"

#include "core/array/array.hpp"
#include "core/fused/rotary_tables.hpp"
#include "core/ops/ops.hpp"

namespace capstan::CAPSTAN_PRECISION {

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

Var rotary_series_composed(const Var& even, const Var& odd, int64_t length, double base) {
  const int64_t pairs = even.size();
  Ids distances(Shape{2 * length - 1});
  for (int64_t i = 0; i < distances.size(); ++i) distances.mutable_data()[i] = static_cast<int32_t>(i - (length - 1));
  const RotaryTables tables = rotary_tables(distances, pairs, base);
  const MatmulOptions transposed{Transpose::no, Transpose::yes};
  return matmul(reshape(even, {1, pairs}), Var(tables.cosine), transposed) +
         matmul(reshape(odd, {1, pairs}), Var(tables.sine), transposed);
}

}  // namespace capstan::CAPSTAN_PRECISION
