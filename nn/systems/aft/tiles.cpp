// The forward pass of AftTiles: cuts tiles, scans the carries, makes weights and multiplies them with packed keys and
// values. Rows whose denominator vanishes are computed exactly. tests/nn/systems/aft/test_op_invariants.cpp.
#include "nn/systems/aft/tiles.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/array/segments.hpp"
#include "core/array/visibility.hpp"
#include "core/base/math.hpp"
#include "core/base/sizes.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/gemm.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// Value channels of a group with one key per channel: [E V | E] then is 128 columns wide,
/// enough for an efficient product.
constexpr int64_t group_channels = 64;

/// Rows with a smaller denominator are computed again, exactly. In others, terms that underflowed do not matter,
/// and in float K - m is within (-32, 0] and rounded by less than 2^-20: an error below 1e-6 of the largest output.
constexpr real denominator_floor = sizeof(real) == 4 ? real(1e-13) : real(1e-250);

}  // namespace

AftTiles::AftTiles(const Array& qkv, const AftLayout& layout, AftBias& bias) : qkv_(qkv), layout_(layout), bias_(bias) {
  cut_tiles();
  cut_groups();
  weight_stride_ = round_up<int64_t>(max_sources_ + 2, 16);  // + 2: prefix and suffix; 16: whole cache lines
  const Shape shape{bias_.heads(), layout_.tile, weight_stride_};
  logits_ = Array(shape);
  weights_ = Array(shape);
  if (layout_.window > 0) scan_carries();
}

void AftTiles::cut_tiles() {
  const int64_t longest = layout_.segments.longest(),
                reach = layout_.window > 0 ? std::min(layout_.window - 1, longest) : longest;
  for (int64_t t0 = layout_.past.sources; t0 < longest; t0 += layout_.tile) {
    const int64_t t1 = std::min(t0 + layout_.tile, longest);
    const int64_t s1 = layout_.causal ? t1 : std::min(t1 + reach, longest);
    tiles_.push_back({t0, t1, std::max<int64_t>(t0 - reach, 0), s1});
    max_sources_ = std::max(max_sources_, tiles_.back().sources());
    const int64_t count = static_cast<int64_t>(tiles_.size());
    if (count > 1 && same_weights(tiles_[tiles_.size() - 2], tiles_.back()))
      runs_.back().end = count;
    else
      runs_.push_back({count - 1, count});
  }
}

bool AftTiles::same_weights(const AftTile& a, const AftTile& b) const {
  const int64_t longest = layout_.segments.longest();
  return bias_.shift_invariant() && a.targets() == b.targets() && a.t0 - a.s0 == b.t0 - b.s0 &&
         a.sources() == b.sources() && has_prefix(a) == has_prefix(b) && (a.s1 < longest) == (b.s1 < longest);
}

void AftTiles::cut_groups() {
  const bool shared = layout_.heads > 0;
  const int64_t channels = shared ? layout_.width / layout_.heads : group_channels;
  for (int64_t channel = 0; channel < layout_.width; channel += channels) {
    const int64_t head = shared ? channel / channels : 0;
    const kernels::AftGroup shape{std::min(channels, layout_.width - channel), shared};
    groups_.push_back({shape, head, channel, shared ? head : channel, total_columns_});
    total_columns_ += shape.columns();
    max_columns_ = std::max(max_columns_, shape.columns());
  }
}

bool AftTiles::make_unit(int64_t index, int64_t tile_index, Unit& unit) const {
  const int64_t group_count = static_cast<int64_t>(groups_.size()), span = index / group_count;
  const Segments::Span& document = layout_.segments.spans()[static_cast<size_t>(span)];
  const AftTile& tile = tiles_[static_cast<size_t>(tile_index)];
  const int64_t length = document.length();
  if (tile.t0 >= length) return false;
  const int64_t s1 = std::min(tile.s1, length);
  unit = {&tile,
          tile_index,
          span,
          length,
          document.row * layout_.segments.length() + document.begin,
          &groups_[static_cast<size_t>(index % group_count)],
          std::min(tile.t1, length) - tile.t0,
          s1 - tile.s0,
          has_prefix(tile),
          !layout_.causal && s1 < length};
  return true;
}

kernels::AftInput AftTiles::input(const Unit& unit, int64_t position) const {
  const int64_t stride = layout_.stride();
  const real* const token = qkv_.data() + (unit.row + position) * stride;
  return {token + unit.group->channel, token + layout_.width + unit.group->key,
          token + layout_.width + layout_.keys() + unit.group->channel, stride};
}

void AftTiles::allocate_work(bool backward, int64_t count) {
  const int64_t granule = 64 / sizeof(real);  // a cache line, so that every part begins at one
  const int64_t exp_rows = (max_sources_ + 2) * max_columns_, rows = layout_.tile * max_columns_;
  const int64_t dlogits = bias_.heads() * layout_.tile * weight_stride_;
  work_stride_ = round_up(max_columns_, granule) + round_up(exp_rows, granule) + round_up(rows, granule);
  if (backward) work_stride_ += round_up(exp_rows, granule) + round_up(dlogits, granule);
  work_ = Array(Shape{count, work_stride_});
}

AftTiles::Work AftTiles::work(int64_t index) {
  const int64_t granule = 64 / sizeof(real);
  Work work{};
  work.reference = work_.mutable_data() + index * work_stride_;
  work.exp_rows = work.reference + round_up(max_columns_, granule);
  work.rows = work.exp_rows + round_up((max_sources_ + 2) * max_columns_, granule);
  work.gradient_rows = work.rows + round_up(layout_.tile * max_columns_, granule);
  work.dlogits = work.gradient_rows + round_up((max_sources_ + 2) * max_columns_, granule);
  return work;
}

kernels::AftState AftTiles::carry(real* states, const Unit& unit) const {
  const int64_t keys = layout_.keys(), size = 2 * keys + layout_.width;
  real* const state = states + (unit.span * static_cast<int64_t>(tiles_.size()) + unit.tile_index) * size;
  return {state + unit.group->key, state + keys + unit.group->key, state + 2 * keys + unit.group->channel};
}

void AftTiles::begin_carry(const Unit& unit, const kernels::AftState& state) const {
  const kernels::AftGroup& group = unit.group->shape;
  if (layout_.past.position == 0) return kernels::aft_state_clear(state, group.keys(), group.channels);
  const AftRunning& before = *layout_.past.state;
  const int64_t row = unit.row / layout_.segments.length(), key = row * layout_.keys() + unit.group->key;
  std::copy_n(before.maximum.data() + key, group.keys(), state.maximum);
  std::copy_n(before.weight.data() + key, group.keys(), state.weight);
  std::copy_n(before.average.data() + row * layout_.width + unit.group->channel, group.channels, state.average);
}

void AftTiles::scan_carries() {
  const int64_t tile_count = static_cast<int64_t>(tiles_.size());
  const Shape shape{layout_.causal ? 1 : 2, static_cast<int64_t>(layout_.segments.spans().size()), tile_count,
                    2 * layout_.keys() + layout_.width};
  carries_ = Array(shape);
  prefixes_ = carries_.mutable_data();
  suffixes_ = layout_.causal ? nullptr : prefixes_ + carries_.size() / 2;
  const auto copy_state = [](const kernels::AftState& from, const kernels::AftState& to,
                             const kernels::AftGroup& group) {
    std::copy_n(from.maximum, group.keys(), to.maximum);
    std::copy_n(from.weight, group.keys(), to.weight);
    std::copy_n(from.average, group.channels, to.average);
  };
  parallel_units(unit_count(), [&](int64_t index) {
    Unit unit{};
    // Prefix of tile i: the tokens before its first source, continued from the prefix of tile i - 1.
    for (int64_t i = 0, done = 0; i < tile_count && make_unit(index, i, unit); ++i) {
      const kernels::AftState state = prefix(unit);
      if (i == 0) {
        begin_carry(unit, state);
      } else {
        Unit before = unit;
        --before.tile_index;
        copy_state(prefix(before), state, unit.group->shape);
      }
      kernels::aft_carry(input(unit, done), unit.tile->s0 - done, unit.group->shape, state);
      done = unit.tile->s0;
    }
    if (layout_.causal) return;
    // Suffix of tile i: the tokens after its last source, continued backwards from the suffix of tile i + 1.
    int64_t done = -1;  // no tile so far
    for (int64_t i = tile_count - 1; i >= 0; --i) {
      if (!make_unit(index, i, unit)) continue;
      const kernels::AftState state = suffix(unit);
      const int64_t end = std::min(unit.tile->s1, unit.length);
      if (done < 0) {
        kernels::aft_state_clear(state, unit.group->shape.keys(), unit.group->shape.channels);
        done = unit.length;
      } else {
        Unit after = unit;
        ++after.tile_index;
        copy_state(suffix(after), state, unit.group->shape);
      }
      kernels::AftInput backwards = input(unit, done - 1);
      backwards.stride = -backwards.stride;
      kernels::aft_carry(backwards, done - end, unit.group->shape, state);
      done = end;
    }
  });
}

void AftTiles::prepare_weights(const AftTile& tile) {
  const int64_t longest = layout_.segments.longest(), suffix_column = 1 + tile.sources();
  const bool prefixed = has_prefix(tile), has_suffix = !layout_.causal && tile.s1 < longest;
  const int64_t first = layout_.past.position;
  const AftTile places{first + tile.t0, first + tile.t1, first + tile.s0, first + tile.s1};
  for (int64_t head = 0; head < bias_.heads(); ++head) {
    const int64_t offset = head * layout_.tile * weight_stride_;
    real* const logits = logits_.mutable_data() + offset;
    real* const weights = weights_.mutable_data() + offset;
    for_each_strip(places, [&](const AftTile& strip) {
      bias_.logits(strip, head, logits + (strip.t0 - places.t0) * weight_stride_ + 1, weight_stride_);
    });
    parallel_each(tile.targets(), 1 + 8192 / weight_stride_, [&](int64_t row) {
      const int64_t t = tile.t0 + row;
      real *const logit = logits + row * weight_stride_, *const weight = weights + row * weight_stride_;
      const int64_t visible = layout_.causal ? std::min(t + 1, tile.s1) - tile.s0 : tile.sources();
      logit[0] = logit[suffix_column] = 0;
      if (layout_.window > 0)
        for (int64_t s = tile.s0; s < tile.s1; ++s)
          if (std::abs(t - s) >= layout_.window) logit[1 + s - tile.s0] = 0;
      real maximum = *std::max_element(logit + 1, logit + 1 + visible);
      if (prefixed || has_suffix) maximum = std::max(maximum, real{0});
      const int64_t count = layout_.causal ? 1 + visible : suffix_column + 1;
      std::copy_n(logit, count, weight);
      kernels::aft_softmax_weights(weight, count, maximum);
      std::fill(weight + count, weight + suffix_column + 1, real{0});  // sources later than target t
    });
  }
}

const real* AftTiles::weights(const Unit& unit) const {
  return weights_.data() + (bias_.heads() > 1 ? unit.group->head : 0) * layout_.tile * weight_stride_ +
         unit.first_column();
}

void AftTiles::pack(const Unit& unit, const Work& work) const {
  const kernels::AftGroup& group = unit.group->shape;
  const kernels::AftInput sources = input(unit, unit.tile->s0);
  std::fill_n(work.reference, group.keys(), std::numeric_limits<real>::lowest());
  kernels::aft_key_maximum(sources, unit.sources, group, work.reference);
  for (int64_t key = 0; key < group.keys(); ++key) {
    if (unit.prefix) work.reference[key] = std::max(work.reference[key], prefix(unit).maximum[key]);
    if (unit.suffix) work.reference[key] = std::max(work.reference[key], suffix(unit).maximum[key]);
  }
  const int64_t columns = group.columns();
  if (unit.prefix) kernels::aft_pack_carry(prefix(unit), group, work.reference, work.exp_rows);
  kernels::aft_pack(sources, unit.sources, group, work.reference, work.exp_rows + columns, columns);
  if (unit.suffix)
    kernels::aft_pack_carry(suffix(unit), group, work.reference, work.exp_rows + (1 + unit.sources) * columns);
}

void AftTiles::forward(real* y, real* average, real* denominator) {
  for (real* const rows : {y, average}) clear_padding(rows, layout_.width, layout_.segments);
  clear_padding(denominator, layout_.keys(), layout_.segments);
  allocate_work(false, team_size());
  for (const Run& run : runs_) {
    prepare_weights(tiles_[static_cast<size_t>(run.begin)]);
    const int64_t tile_count = run.end - run.begin;
    parallel_each(unit_count() * tile_count, 1, [&](int64_t index) {
      Unit unit{};
      if (make_unit(index / tile_count, run.begin + index % tile_count, unit))
        forward_unit(unit, work(thread_index()), y, average, denominator);
    });
  }
}

void AftTiles::forward_unit(const Unit& unit, const Work& work, real* y, real* average, real* denominator) const {
  const kernels::AftGroup& group = unit.group->shape;
  const int64_t columns = group.columns(), token = unit.row + unit.tile->t0,
                at = token * layout_.width + unit.group->channel;
  pack(unit, work);
  for_each_strip(unit.seen(), [&](const AftTile& strip) {
    const int64_t row = strip.t0 - unit.tile->t0;
    gemm(strip.targets(), columns, unit.columns(strip.sources()),
         {weights(unit) + row * weight_stride_, weight_stride_},
         {work.exp_rows + unit.first_column() * columns, columns}, work.rows + row * columns, columns);
  });
  const bool inexact = kernels::aft_finish(input(unit, unit.tile->t0), unit.targets, group, work.rows, columns,
                                           denominator_floor, y + at, average + at, layout_.width,
                                           denominator + token * layout_.keys() + unit.group->key, layout_.keys());
  if (inexact) exact_rows(unit, y, average, denominator);
}

int64_t AftTiles::exact_weights(const Unit& unit, int64_t t, int64_t key, real* weights) const {
  const int64_t count = layout_.causal ? t + 1 : unit.length, stride = layout_.stride();
  const real* const k = input(unit, 0).k + key;
  const real* const logits =
      logits_.data() +
      ((bias_.heads() > 1 ? unit.group->head : 0) * layout_.tile + t - unit.tile->t0) * weight_stride_ + 1;
  const bool carried = layout_.past.position > 0;
  const auto before = [&](const Array& state) {
    return state[unit.row / layout_.segments.length() * layout_.keys() + unit.group->key + key];
  };
  real key_maximum = carried ? before(layout_.past.state->maximum) : k[0];
  for (int64_t s = 0; s < count; ++s) key_maximum = std::max(key_maximum, k[s * stride]);
  real maximum = std::numeric_limits<real>::lowest();
  for (int64_t s = 0; s < count; ++s) {
    const bool windowed = s >= unit.tile->s0 && s < unit.tile->s1;
    // (K - m) + w, never (K + w) - m: rounding K + w would lose w beside a large key.
    weights[s] = (k[s * stride] - key_maximum) + (windowed ? logits[s - unit.tile->s0] : 0);
    maximum = std::max(maximum, weights[s]);
  }
  if (carried) {
    weights[count] =
        (before(layout_.past.state->maximum) - key_maximum) + math::log(before(layout_.past.state->weight));
    maximum = std::max(maximum, weights[count]);
  }
  const int64_t weight_count = count + (carried ? 1 : 0);
  real total = 0;
  for (int64_t s = 0; s < weight_count; ++s) total += weights[s] = math::exp(weights[s] - maximum);
  for (int64_t s = 0; s < weight_count; ++s) weights[s] /= total;
  return count;
}

void AftTiles::exact_rows(const Unit& unit, real* y, real* average, const real* denominator) const {
  const kernels::AftGroup& group = unit.group->shape;
  const bool carried = layout_.past.position > 0;
  std::vector<real> weights(static_cast<size_t>(unit.length + 1));
  for (int64_t t = unit.tile->t0; t < unit.tile->t0 + unit.targets; ++t) {
    const int64_t token = unit.row + t;
    for (int64_t key = 0; key < group.keys(); ++key) {
      if (denominator[token * layout_.keys() + unit.group->key + key] > 0) continue;
      const int64_t count = exact_weights(unit, t, key, weights.data());
      const int64_t first = group.shared_key ? 0 : key, last = group.shared_key ? group.channels : key + 1;
      for (int64_t c = first; c < last; ++c) {
        const real* const v = input(unit, 0).v + c;
        real r = 0;
        if (carried)
          r = weights[static_cast<size_t>(count)] *
              layout_.past.state
                  ->average[unit.row / layout_.segments.length() * layout_.width + unit.group->channel + c];
        for (int64_t s = 0; s < count; ++s) r += weights[static_cast<size_t>(s)] * v[s * layout_.stride()];
        const int64_t at = token * layout_.width + unit.group->channel + c;
        average[at] = r;
        y[at] = r / (1 + math::exp(-input(unit, t).q[c]));
      }
    }
  }
}

}  // namespace capstan::CAPSTAN_PRECISION
