#include "core/ops_gated.hpp"

#include <numeric>

#include "core/error.hpp"
#include "core/grad_sink.hpp"
#include "core/kernels/gated.hpp"
#include "core/rotary_tables.hpp"

CAPSTAN_BEGIN
namespace {

std::vector<kernels::SiluPart> parts_of(const std::vector<int64_t>& widths) {
  std::vector<kernels::SiluPart> parts;
  for (const int64_t width : widths) parts.push_back({width, nullptr, nullptr});
  return parts;
}

const real* data_or_null(const Array& array) { return array.empty() ? nullptr : array.data(); }

/// What offset_scale keeps for its pullback.
struct SavedViews {
  Array z, gain, offset;
  int64_t pairs;
  bool interleaved;
  RotaryTables tables;  // empty without a turn

  kernels::OffsetScalePass pass() const {
    const int64_t width = z.dim(2);
    return {z.data(),
            gain.data(),
            offset.data(),
            gain.dim(0),
            {z.dim(0) * z.dim(1), 1, width, pairs, interleaved, tables.cosine.data(), tables.sine.data(),
             tables.rows.data()}};
  }
};

}  // namespace

std::vector<Var> split_silu(const Var& packed, const std::vector<int64_t>& widths) {
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
  check(z.rank() == 3 && gain.rank() == 2 && gain.dim(1) == z.dim(2) && offset.shape() == gain.shape(),
        "offset_scale: gain {} and offset {} do not fit z {}", gain.shape(), offset.shape(), z.shape());
  check(positions.shape() == Shape{z.dim(0), z.dim(1)}, "offset_scale: positions {} do not fit z {}", positions.shape(),
        z.shape());
  SavedViews saved{z.value(), gain.value(), offset.value(), 0, false, {}};
  if (turn) {
    saved.pairs = rotary_pairs(*turn, z.dim(2));
    saved.interleaved = turn->pairs == RotaryPairs::interleaved;
    saved.tables = rotary_tables(positions, saved.pairs, turn->base);
  }
  std::vector<Array> values;
  std::vector<real*> outs;
  for (int64_t c = 0; c < gain.dim(0); ++c) {
    values.emplace_back(z.shape());
    outs.push_back(values.back().mutable_data());
  }
  kernels::offset_scale(saved.pass(), outs.data());
  return make_vars("offset_scale", std::move(values), {z, gain, offset},
                   [saved = std::move(saved)](const std::vector<Array>& dys, const Needs& needs) -> Grads {
                     std::vector<const real*> incoming;
                     for (const Array& dy : dys) incoming.push_back(data_or_null(dy));
                     Array dz;
                     if (needs[0]) dz = Array(saved.z.shape());
                     GradSink dgain(needs, 1, saved.gain.shape()), doffset(needs, 2, saved.gain.shape());
                     kernels::offset_scale_backward(saved.pass(), incoming.data(),
                                                    needs[0] ? dz.mutable_data() : nullptr,
                                                    {dgain.data(), dgain.beta()}, {doffset.data(), doffset.beta()});
                     return {needs[0] ? Grad(std::move(dz)) : Grad(), dgain.grad(), doffset.grad()};
                   });
}

CAPSTAN_END
