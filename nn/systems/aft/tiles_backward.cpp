// The pullback of the tiled AFT ops. With H = dY sigmoid(Q), P = H / D and a = e^(K + w):
//   dQ = H R (1 - sigmoid(Q)),  dV_s = sum_t a_ts P_t,  dK_s = V_s dV_s - sum_t a_ts P_t R_t,
//   dw_ts = sum_c a_tsc P_tc (V_sc - R_tc).
#include <algorithm>
#include <cmath>

#include "core/base/math.hpp"
#include "core/kernels/elementwise.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/gemm.hpp"
#include "nn/systems/aft/tiles.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

constexpr int64_t max_parts = 8;

}  // namespace

kernels::AftGradient AftTiles::gradient(const Unit& unit, int64_t position, real* dqkv) const {
  real* const token = dqkv + (unit.row + position) * layout_.stride();
  return {token + unit.group->channel, token + layout_.width + unit.group->key,
          token + layout_.width + layout_.keys() + unit.group->channel, layout_.stride()};
}

void AftTiles::backward(const real* dy, const real* average, const real* denominator, real* dqkv) {
  const Gradients g{dy, average, denominator, dqkv};
  kernels::fill(dqkv, qkv_.size(), real{0});
  allocate_work(true, std::max<int64_t>(parts(), team_size()));
  const int64_t tile_count = static_cast<int64_t>(tiles_.size());
  if (layout_.window > 0) {
    const Shape shape{static_cast<int64_t>(layout_.segments.spans().size()), tile_count, total_columns_};
    prefix_grads_ = Array(shape);
    if (!layout_.causal) suffix_grads_ = Array(shape);
  }
  for (const Run& run : runs_) backward_run(run, g);
  if (layout_.window == 0) return;
  parallel_each(unit_count(), 1, [&](int64_t index) {
    Unit unit{};
    make_unit(index, 0, unit);
    scatter_carries(unit, work(thread_index()), g, true);
    if (!layout_.causal) scatter_carries(unit, work(thread_index()), g, false);
  });
}

int64_t AftTiles::parts() const { return in_parallel() ? 1 : std::clamp<int64_t>(unit_count(), 1, max_parts); }

void AftTiles::backward_run(const Run& run, const Gradients& g) {
  prepare_weights(tiles_[static_cast<size_t>(run.begin)]);
  const int64_t count = parts();
  std::vector<Array> exact(static_cast<size_t>(count));
  parallel_units(count, [&](int64_t part) {
    const Work mine = work(part);
    std::vector<bool> begun(static_cast<size_t>(bias_.heads()), false);
    // Neighbouring tiles share sources, so one thread takes all tiles of a unit.
    for (int64_t index = unit_count() * part / count; index < unit_count() * (part + 1) / count; ++index) {
      Unit unit{};
      for (int64_t i = run.begin; i < run.end && make_unit(index, i, unit); ++i) {
        backward_unit(unit, mine, g, exact[static_cast<size_t>(part)], begun);
      }
    }
    for (int64_t head = 0; head < bias_.heads(); ++head)
      if (!begun[static_cast<size_t>(head)]) clear_dlogits(tiles_[static_cast<size_t>(run.begin)], mine, head);
  });
  finish_run(tiles_[static_cast<size_t>(run.begin)], exact);
}

void AftTiles::clear_dlogits(const AftTile& tile, const Work& work, int64_t head) const {
  for (int64_t row = 0; row < tile.targets(); ++row)
    std::fill_n(work.dlogits + (head * layout_.tile + row) * weight_stride_ + 1, tile.sources(), real{0});
}

void AftTiles::backward_unit(const Unit& unit, const Work& work, const Gradients& g, Array& exact_dlogits,
                             std::vector<bool>& begun) {
  const kernels::AftGroup& group = unit.group->shape;
  const int64_t columns = group.columns(), t0 = unit.tile->t0, token = unit.row + t0;
  const int64_t at = token * layout_.width + unit.group->channel;
  pack(unit, work);
  const bool inexact =
      kernels::aft_start_backward(input(unit, t0), unit.targets, group, g.dy + at, g.average + at, layout_.width,
                                  g.denominator + token * layout_.keys() + unit.group->key, layout_.keys(),
                                  gradient(unit, t0, g.dqkv).q, layout_.stride(), work.rows, columns);
  source_gradients(unit, work);
  kernels::aft_scatter(input(unit, unit.tile->s0), unit.sources, group, work.exp_rows + columns, columns,
                       work.gradient_rows + columns, columns, gradient(unit, unit.tile->s0, g.dqkv));
  if (unit.prefix) keep_carry_gradient(unit, work, true);
  if (unit.suffix) keep_carry_gradient(unit, work, false);
  // d(log weight) / weight; the weight itself is multiplied in once per tile. Carries have no w.
  const int64_t head = bias_.heads() > 1 ? unit.group->head : 0;
  // The part's first product overwrites the sum if it covers the tile: a tile of a long text is larger than a cache.
  const bool covers_tile = unit.targets == unit.tile->targets() && unit.sources == unit.tile->sources();
  const bool add = begun[static_cast<size_t>(head)] || !covers_tile;
  if (!begun[static_cast<size_t>(head)] && !covers_tile) clear_dlogits(*unit.tile, work, head);
  begun[static_cast<size_t>(head)] = true;
  for_each_strip(unit.seen(), [&](const AftTile& strip) {
    const int64_t row = strip.t0 - t0;
    gemm(strip.targets(), strip.sources(), columns, {work.rows + row * columns, columns},
         {work.exp_rows + columns, columns, Transpose::yes},
         work.dlogits + (head * layout_.tile + row) * weight_stride_ + 1, weight_stride_, 1, add ? 1 : 0);
  });
  if (!inexact) return;
  if (exact_dlogits.empty()) exact_dlogits = Array::zeros(Shape{bias_.heads() * layout_.tile * weight_stride_});
  exact_rows_backward(unit, g, exact_dlogits.mutable_data());
}

/// The rows [G_v | G_k] of the sources: those of a strip meet its targets and later ones.
void AftTiles::source_gradients(const Unit& unit, const Work& work) const {
  const int64_t columns = unit.group->shape.columns();
  int64_t column = 0;  // the first that is not computed yet
  for_each_strip(unit.seen(), [&](const AftTile& strip) {
    const int64_t end = unit.columns(strip.sources()), row = strip.t0 - unit.tile->t0;
    gemm(end - column, columns, unit.targets - row,
         {weights(unit) + row * weight_stride_ + column, weight_stride_, Transpose::yes},
         {work.rows + row * columns, columns}, work.gradient_rows + (unit.first_column() + column) * columns, columns);
    column = end;
  });
}

void AftTiles::exact_rows_backward(const Unit& unit, const Gradients& g, real* exact_dlogits) const {
  const kernels::AftGroup& group = unit.group->shape;
  const int64_t stride = layout_.stride();
  std::vector<real> weights(static_cast<size_t>(unit.length));
  const kernels::AftInput in = input(unit, 0);
  const kernels::AftGradient out = gradient(unit, 0, g.dqkv);
  for (int64_t t = unit.tile->t0; t < unit.tile->t0 + unit.targets; ++t) {
    const int64_t token = unit.row + t;
    real* const dlogits =
        exact_dlogits +
        ((bias_.heads() > 1 ? unit.group->head : 0) * layout_.tile + t - unit.tile->t0) * weight_stride_ + 1;
    for (int64_t key = 0; key < group.keys(); ++key) {
      if (g.denominator[token * layout_.keys() + unit.group->key + key] > 0) continue;
      const int64_t count = exact_weights(unit, t, key, weights.data());
      const int64_t first = group.shared_key ? 0 : key, last = group.shared_key ? group.channels : key + 1;
      for (int64_t c = first; c < last; ++c) {
        const int64_t at = token * layout_.width + unit.group->channel + c;
        const real h = g.dy[at] / (1 + math::exp(-in.q[t * stride + c]));
        for (int64_t s = 0; s < count; ++s) {
          const real weight = weights[static_cast<size_t>(s)],
                     dlogit = weight * (in.v[s * stride + c] - g.average[at]) * h;
          out.v[s * stride + c] += weight * h;
          out.k[s * stride + key] += dlogit;
          if (s >= unit.tile->s0 && s < unit.tile->s1) dlogits[s - unit.tile->s0] += dlogit;
        }
      }
    }
  }
}

void AftTiles::keep_carry_gradient(const Unit& unit, const Work& work, bool is_prefix) {
  const kernels::AftGroup& group = unit.group->shape;
  const kernels::AftState state = is_prefix ? prefix(unit) : suffix(unit);
  const real* const row = work.gradient_rows + (is_prefix ? 0 : 1 + unit.sources) * group.columns();
  Array& kept = is_prefix ? prefix_grads_ : suffix_grads_;
  real* const out = kept.mutable_data() +
                    (unit.span * static_cast<int64_t>(tiles_.size()) + unit.tile_index) * total_columns_ +
                    unit.group->column;
  // From the tile's reference to the carry's own maximum: e^(m_carry - m_tile) <= 1.
  for (int64_t c = 0; c < group.channels; ++c) {
    const int64_t key = group.shared_key ? 0 : c;
    out[c] = row[c] * math::exp(state.maximum[key] - work.reference[key]);
  }
  for (int64_t key = 0; key < group.keys(); ++key)
    out[group.channels + key] = row[group.channels + key] * math::exp(state.maximum[key] - work.reference[key]);
}

void AftTiles::finish_run(const AftTile& tile, const std::vector<Array>& exact) {
  const int64_t count = static_cast<int64_t>(exact.size());
  for (int64_t head = 0; head < bias_.heads(); ++head) {
    real* const total = work(0).dlogits + head * layout_.tile * weight_stride_;
    for_each_strip(tile, [&](const AftTile& strip) {
      const int64_t sources = strip.sources(), begin = (strip.t0 - tile.t0) * weight_stride_ + 1;
      parallel_each(strip.targets(), 1 + 8192 / sources, [&](int64_t row) {
        const int64_t at = begin + row * weight_stride_, offset = head * layout_.tile * weight_stride_ + at;
        real* const dlogit = total + at;
        for (int64_t part = 1; part < count; ++part) kernels::add_into(dlogit, work(part).dlogits + offset, sources);
        for (int64_t s = 0; s < sources; ++s) dlogit[s] *= weights_[offset + s];
        for (const Array& part : exact)
          if (!part.empty()) kernels::add_into(dlogit, part.data() + offset, sources);
        if (layout_.window > 0)
          for (int64_t s = 0; s < sources; ++s)
            if (std::abs(strip.t0 + row - strip.s0 - s) >= layout_.window) dlogit[s] = 0;
      });
      bias_.add_gradient(strip, head, total + begin, weight_stride_);
    });
  }
}

void AftTiles::scatter_carries(const Unit& first_unit, const Work& work, const Gradients& g, bool is_prefix) const {
  // Tiles from the one with the largest carry to the one with the smallest; `sum` collects the gradient rows of all
  // tiles that a token is a carried source of, relative to the maximum of the current carry.
  const kernels::AftGroup& group = first_unit.group->shape;
  const int64_t columns = group.columns(), tile_count = static_cast<int64_t>(tiles_.size());
  const int64_t index = first_unit.span * static_cast<int64_t>(groups_.size()) + (first_unit.group - groups_.data());
  real* const sum = work.rows;
  std::fill_n(sum, columns, real{0});
  const real* last_maximum = nullptr;
  const Array& kept = is_prefix ? prefix_grads_ : suffix_grads_;
  for (int64_t step = 0; step < tile_count; ++step) {
    const int64_t i = is_prefix ? tile_count - 1 - step : step;
    Unit unit{};
    if (!make_unit(index, i, unit) || !(is_prefix ? unit.prefix : unit.suffix)) continue;
    const real* const maximum = (is_prefix ? prefix(unit) : suffix(unit)).maximum;
    const real* const row = kept.data() + (unit.span * tile_count + i) * total_columns_ + unit.group->column;
    for (int64_t column = 0; column < columns; ++column) {
      const int64_t key = column >= group.channels ? column - group.channels : group.shared_key ? 0 : column;
      const real decay = last_maximum == nullptr ? 0 : math::exp(maximum[key] - last_maximum[key]);
      sum[column] = row[column] + decay * sum[column];
    }
    last_maximum = maximum;
    // The tokens whose smallest carry this is.
    int64_t begin, end;
    if (is_prefix) {
      begin = i > 0 ? tiles_[static_cast<size_t>(i - 1)].s0 : 0;
      end = unit.tile->s0;
    } else {
      begin = std::min(unit.tile->s1, unit.length);
      end = i + 1 < tile_count ? std::min(tiles_[static_cast<size_t>(i + 1)].s1, unit.length) : unit.length;
    }
    for (int64_t s = begin; s < end; s += max_sources_) {
      const int64_t count = std::min(max_sources_, end - s);
      kernels::aft_pack(input(unit, s), count, group, maximum, work.exp_rows, columns);
      kernels::aft_scatter(input(unit, s), count, group, work.exp_rows, columns, sum, 0, gradient(unit, s, g.dqkv));
    }
  }
}

}  // namespace capstan::CAPSTAN_PRECISION
