// split_silu() and offset_scale() are one pass over their rows each, forward and back, and keep their inputs alone.
// Tables of angles are as long as a view and are made again in the pullback.
#include "nn/systems/gated/op.hpp"

#include <algorithm>
#include <numeric>

#include "core/autograd/grad_sink.hpp"
#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "core/fused/rotary.hpp"
#include "core/fused/rotary_tables.hpp"
#include "core/machine/profile.hpp"
#include "core/ops/ops.hpp"
#include "core/products/gemm.hpp"
#include "nn/systems/gated/kernels/passes.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

std::vector<kernels::SiluPart> parts_of(const std::vector<int64_t>& widths) {
  std::vector<kernels::SiluPart> parts;
  for (const int64_t width : widths) parts.push_back({width, nullptr, nullptr});
  return parts;
}

const real* data_or_null(const Array& array) { return array.empty() ? nullptr : array.data(); }

/// What offset_scale keeps for its pullback: the tables of angles are as long as a view and quickly made again.
struct SavedViews {
  Array z, gain, offset;
  Ids positions;
  int64_t pairs;  // 0: no turn
  bool interleaved;
  double base;

  RotaryTables tables() const { return pairs > 0 ? rotary_tables(positions, pairs, base) : RotaryTables{}; }
  kernels::OffsetScalePass pass(const RotaryTables& tables) const {
    const int64_t width = z.dim(2);
    return {z.data(),
            gain.data(),
            offset.data(),
            gain.dim(0),
            {z.dim(0) * z.dim(1), 1, width, pairs, interleaved, tables.cosine.data(), tables.sine.data(),
             tables.rows.data()}};
  }
};

/// Distances handled at a time by rotary_series.
constexpr int64_t series_block = 4096;

/// body(first, count, tables of the distances first, ..., first + count - 1) for all distances below `length`.
template <class Body>
void for_distances(int64_t length, int64_t pairs, double base, const Body& body) {
  for (int64_t first = 0; first < length; first += series_block) {
    const int64_t count = std::min(series_block, length - first);
    Ids distances(Shape{count});
    std::iota(distances.mutable_data(), distances.mutable_data() + count, static_cast<int32_t>(first));
    body(first, count, rotary_tables(distances, pairs, base));
  }
}

}  // namespace

std::vector<Var> split_silu(const Var& packed, const std::vector<int64_t>& widths) {
  const ProfileSpan span;
  const int64_t columns = packed.dim(-1), rows = columns == 0 ? 0 : packed.size() / columns;
  check(!widths.empty() && std::accumulate(widths.begin(), widths.end(), int64_t{0}) == columns,
        "split_silu: the widths do not add up to the columns of packed {}", packed.shape());
  std::vector<kernels::SiluPart> parts = parts_of(widths);
  std::vector<Array> values;
  for (kernels::SiluPart& part : parts) {
    values.emplace_back(packed.shape().with(-1, part.width));
    part.out = values.back().mutable_data();
  }
  kernels::split_silu(packed.value().data(), parts.data(), static_cast<int64_t>(parts.size()), rows, columns);
  return make_vars("split_silu", std::move(values), {packed},
                   [pre = packed.value(), widths, rows, columns](const std::vector<Array>& dys, const Needs&) -> Grads {
                     std::vector<kernels::SiluPart> groups = parts_of(widths);
                     for (size_t p = 0; p < groups.size(); ++p) groups[p].dy = data_or_null(dys[p]);
                     Array dpacked(pre.shape());
                     kernels::split_silu_backward(pre.data(), groups.data(), static_cast<int64_t>(groups.size()),
                                                  dpacked.mutable_data(), rows, columns);
                     return {std::move(dpacked)};
                   });
}

std::vector<Var> offset_scale(const Var& z, const Var& gain, const Var& offset, const Ids& positions,
                              const std::optional<RotaryOptions>& turn) {
  const ProfileSpan span;
  check(z.rank() == 3 && gain.rank() == 2 && gain.dim(1) == z.dim(2) && offset.shape() == gain.shape(),
        "offset_scale: gain {} and offset {} do not fit z {}", gain.shape(), offset.shape(), z.shape());
  check(positions.shape() == Shape{z.dim(0), z.dim(1)}, "offset_scale: positions {} do not fit z {}", positions.shape(),
        z.shape());
  SavedViews saved{z.value(), gain.value(), offset.value(), positions, 0, false, 0};
  if (turn) {
    saved.pairs = rotary_pairs(*turn, z.dim(2));
    saved.interleaved = turn->pairs == RotaryPairs::interleaved;
    saved.base = turn->base;
  }
  std::vector<Array> values;
  std::vector<real*> outs;
  for (int64_t c = 0; c < gain.dim(0); ++c) {
    values.emplace_back(z.shape());
    outs.push_back(values.back().mutable_data());
  }
  kernels::offset_scale(saved.pass(saved.tables()), outs.data());
  return make_vars("offset_scale", std::move(values), {z, gain, offset},
                   [saved = std::move(saved)](const std::vector<Array>& dys, const Needs& needs) -> Grads {
                     std::vector<const real*> incoming;
                     for (const Array& dy : dys) incoming.push_back(data_or_null(dy));
                     Array dz;
                     if (needs[0]) dz = Array(saved.z.shape());
                     GradSink dgain(needs, 1, saved.gain.shape()), doffset(needs, 2, saved.gain.shape());
                     kernels::offset_scale_backward(saved.pass(saved.tables()), incoming.data(),
                                                    needs[0] ? dz.mutable_data() : nullptr,
                                                    {dgain.data(), dgain.beta()}, {doffset.data(), doffset.beta()});
                     return {needs[0] ? Grad(std::move(dz)) : Grad(), dgain.grad(), doffset.grad()};
                   });
}

Var rotary_series(const Var& even, const Var& odd, int64_t length, double base) {
  const ProfileSpan span;
  const int64_t pairs = even.size();
  check(length > 0 && pairs > 0 && even.rank() == 1 && odd.shape() == even.shape(),
        "rotary_series: even {} and odd {} for {} distances", even.shape(), odd.shape(), length);
  Array table(Shape{1, 2 * length - 1});
  real* const zero = table.mutable_data() + length - 1;  // the entry of distance 0
  for_distances(length, pairs, base, [&](int64_t first, int64_t count, const RotaryTables& tables) {
    Array cosines(Shape{count}), sines(Shape{count});
    gemm(count, 1, pairs, {tables.cosine.data(), pairs}, {even.value().data(), 1}, cosines.mutable_data(), 1);
    gemm(count, 1, pairs, {tables.sine.data(), pairs}, {odd.value().data(), 1}, sines.mutable_data(), 1);
    for (int64_t d = first; d < first + count; ++d) {
      zero[-d] = cosines[d - first] - sines[d - first];
      zero[d] = cosines[d - first] + sines[d - first];
    }
  });
  return make_var("rotary_series", std::move(table), {even, odd},
                  [length, pairs, base](const Array& g, const Needs&) -> Grads {
                    Array deven = Array::zeros(Shape{pairs}), dodd = Array::zeros(Shape{pairs});
                    real *const to_even = deven.mutable_data(), *const to_odd = dodd.mutable_data();
                    const real* const at_zero = g.data() + length - 1;
                    for_distances(length, pairs, base, [&](int64_t first, int64_t count, const RotaryTables& tables) {
                      Array sums(Shape{count}), differences(Shape{count});
                      real *const sum = sums.mutable_data(), *const difference = differences.mutable_data();
                      for (int64_t d = first; d < first + count; ++d) {
                        sum[d - first] = d == 0 ? at_zero[0] : at_zero[d] + at_zero[-d];
                        difference[d - first] = at_zero[d] - at_zero[-d];
                      }
                      gemm(1, pairs, count, {sum, count}, {tables.cosine.data(), pairs}, to_even, pairs, 1, 1);
                      gemm(1, pairs, count, {difference, count}, {tables.sine.data(), pairs}, to_odd, pairs, 1, 1);
                    });
                    return {std::move(deven), std::move(dodd)};
                  });
}

}  // namespace capstan::CAPSTAN_PRECISION
