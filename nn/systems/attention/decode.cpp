// Attention token by token, from the keys and values of all tokens so far.
#include <algorithm>

#include "core/base/error.hpp"
#include "core/fused/kernels/rotary.hpp"
#include "core/machine/parallel.hpp"
#include "nn/systems/attention/mixer.hpp"
#include "nn/systems/quadratic/key_value_cache.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// Multiply-adds of a step below which a second thread costs more than it saves.
constexpr int64_t serial_work = 1 << 16;

struct AttentionState final : MixerState {
  AttentionState(int64_t batch, int64_t width_) : MixerState(batch), width(width_), cache(batch, width_, width_) {}
  std::vector<Array*> parts() override { return {}; }
  void select(const std::vector<int64_t>& rows) override {
    MixerState::select(rows);
    cache.select(rows);
  }
  void copy(int64_t to, MixerState& from, int64_t row) override {
    MixerState::copy(to, from, row);
    cache.copy(to, static_cast<AttentionState&>(from).cache, row, position(to));
  }
  void visit(int64_t row, int64_t position, const Elements& body) override {
    MixerState::visit(row, position, body);
    cache.visit(row, position, body);
  }
  int64_t elements(int64_t seen) const override { return 2 * width * seen; }

  int64_t width;
  KeyValueCache cache;
};

}  // namespace

std::unique_ptr<MixerState> MultiHeadAttention::make_state(int64_t batch) const {
  if (!shape_.causal) throw std::logic_error("attention: a bidirectional mixer does not decode");
  return new_state<AttentionState>(batch, shape_.width);
}

Var MultiHeadAttention::prefill(const Var& x, MixerState& mixer_state) const {
  const int64_t width = shape_.width;
  auto& state = prefill_state<AttentionState>(mixer_state, "attention", x, width);
  const int64_t batch = x.dim(0), length = x.dim(1);
  if (batch == 0 || length == 0) return x;
  const int64_t position = state.position(0);
  const bool prefix = shape_.prefix && position == 0;
  const Var qkv = project(x, positions_from(position, batch, length));
  const real* const first = qkv.value().data();
  state.cache.append(state.positions(), batch, length, first + width, 3 * width, first + 2 * width, 3 * width);
  state.advance(batch, length);
  return output(Var(state.cache.attend_last(position, length, options(!prefix), Array(), first, 3 * width)));
}

Var MultiHeadAttention::step(const Var& x, MixerState& mixer_state) const {
  const int64_t width = shape_.width, heads = config_.heads, head = width / heads;
  auto& state = step_state<AttentionState>(mixer_state, "attention", x, width);
  const int64_t rows = x.dim(0);
  Array qkv = state.decode().linear(x.value(), qkv_weight_, packed_bias());
  real* const first = qkv.mutable_data();
  if (config_.rotary.enabled) {
    const RotaryOptions options = config_.rotary.options();
    const int64_t pairs = rotary_pairs(options, head);
    const RotaryTables& turn = state.decode().rotary(first_positions(state.positions(), rows), pairs, options.base);
    kernels::rotate({rows, 3 * heads, head, pairs, options.pairs == RotaryPairs::interleaved, turn.cosine.data(),
                     turn.sine.data(), turn.rows.data(), 2 * heads},
                    false, first, first);
  }
  state.cache.append(state.positions(), rows, 1, first + width, 3 * width, first + 2 * width, 3 * width);
  state.advance(rows, 1);
  const auto scale = static_cast<real>(options(shape_.causal).scale);
  Array y(Shape{rows, width});
  real* const out = y.mutable_data();
  int64_t tokens = 0;
  for (int64_t row = 0; row < rows; ++row) tokens += state.position(row);
  const auto one = [&](int64_t unit) {
    const int64_t row = unit / heads, begin = unit % heads * head;
    kernels::attention_decode(state.cache.part(row, state.position(row), begin, head, begin, head),
                              AttentionKernel::softmax, scale, nullptr, 1, first + row * 3 * width + begin,
                              out + row * width + begin);
  };
  if (tokens * 2 * width < serial_work)
    for (int64_t unit = 0; unit < rows * heads; ++unit) one(unit);
  else
    parallel_units(rows * heads, one);
  return Var(to_out_ ? to_out_->step(y, state.decode()) : y);
}

}  // namespace capstan::CAPSTAN_PRECISION
