// Attention token by token, from the keys and values of all tokens so far.
#include "core/base/error.hpp"
#include "core/fused/kernels/rotary.hpp"
#include "nn/systems/attention/mixer.hpp"
#include "nn/systems/quadratic/key_value_cache.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

struct AttentionState final : MixerState {
  AttentionState(int64_t batch, int64_t width_) : width(width_), cache(batch, width_, width_) {}
  void reset() override { cache.clear(); }
  void select(const std::vector<int64_t>& rows) override { cache.select(rows); }
  int64_t elements(int64_t position) const override { return 2 * width * position; }

  int64_t width;
  KeyValueCache cache;
};

}  // namespace

std::unique_ptr<MixerState> MultiHeadAttention::make_state(int64_t batch) const {
  if (!shape_.causal) throw std::logic_error("attention: a bidirectional mixer does not decode");
  return new_state<AttentionState>(batch, shape_.width);
}

Var MultiHeadAttention::prefill(const Var& x, MixerState& state) const {
  const int64_t width = shape_.width;
  KeyValueCache& cache = own_state<AttentionState>(state, "attention").cache;
  check(x.rank() == 3 && x.dim(0) == cache.batch() && x.dim(2) == width,
        "attention: prefill: x is {}, but must be ({}, T, {})", x.shape(), cache.batch(), width);
  if (x.dim(1) == 0) return x;
  const bool prefix = shape_.prefix && cache.count() == 0;
  const Var qkv = project(x, positions_from(cache.count(), x.dim(0), x.dim(1)));
  const real* const first = qkv.value().data();
  cache.append(first + width, 3 * width, first + 2 * width, 3 * width, x.dim(1));
  return output(Var(cache.attend_last(x.dim(1), options(!prefix), Array(), first, 3 * width)));
}

Var MultiHeadAttention::step(const Var& x, MixerState& state) const {
  const int64_t width = shape_.width, heads = config_.heads;
  KeyValueCache& cache = own_state<AttentionState>(state, "attention").cache;
  const int64_t batch = cache.batch();
  check(x.shape() == Shape{batch, width}, "attention: step: x is {}, but must be ({}, {})", x.shape(), batch, width);
  Array qkv = state.decode().linear(x.value(), qkv_weight_, packed_bias());
  real* const first = qkv.mutable_data();
  if (config_.rotary.enabled) {
    const RotaryOptions options = config_.rotary.options();
    const int64_t pairs = rotary_pairs(options, width / heads);
    const RotaryTables& turn =
        state.decode().rotary(Ids(Shape{batch}, static_cast<int32_t>(cache.count())), pairs, options.base);
    kernels::rotate({batch, 3 * heads, width / heads, pairs, options.pairs == RotaryPairs::interleaved,
                     turn.cosine.data(), turn.sine.data(), turn.rows.data(), 2 * heads},
                    false, first, first);
  }
  cache.append(first + width, 3 * width, first + 2 * width, 3 * width, 1);
  CacheQuery query;
  query.heads = heads;
  query.scale = static_cast<real>(options(shape_.causal).scale);
  Array y(Shape{batch, width});
  cache.attend(query, first, 3 * width, y.mutable_data());
  return Var(to_out_ ? to_out_->step(y, state.decode()) : y);
}

}  // namespace capstan::CAPSTAN_PRECISION
