// GAU token by token: the keys and values of all tokens so far, in buffers that double when they are full.
#include <algorithm>

#include "core/array/select.hpp"
#include "core/base/error.hpp"
#include "nn/systems/gated/kernels/passes.hpp"
#include "nn/systems/gau/mixer.hpp"
#include "nn/systems/quadratic/kernels/decode.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

constexpr int64_t first_capacity = 64;

struct GauDecodeState final : MixerState {
  GauDecodeState(int64_t batch_, int64_t key_width_, int64_t value_width_)
      : batch(batch_), key_width(key_width_), value_width(value_width_) {}

  void reset() override { position = 0; }
  void select(const std::vector<int64_t>& rows) override {
    keys = select_rows(keys, rows);
    values = select_rows(values, rows);
    batch = static_cast<int64_t>(rows.size());
  }
  int64_t elements(int64_t seen) const override { return seen * (key_width + value_width); }

  int64_t batch, key_width, value_width;
  int64_t position = 0, capacity = 0;
  Array keys, values;  // (B, capacity, Z), (B, capacity, E)
  Array bias;          // (capacity): entry capacity - 1 - d is b_d, so that a row of the cache reads it forwards
};

/// Throws std::invalid_argument for a state that some other mixer made.
GauDecodeState& decode_state(MixerState& state, int64_t key_width, int64_t value_width) {
  auto* const gau = dynamic_cast<GauDecodeState*>(&state);
  check(gau != nullptr && gau->key_width == key_width && gau->value_width == value_width,
        "gau: this state was made for another mixer");
  return *gau;
}

/// rows (B, capacity, width) with room for more: the first `used` rows of every sequence are kept.
Array grown(const Array& rows, int64_t batch, int64_t used, int64_t capacity, int64_t width) {
  Array more(Shape{batch, capacity, width});
  for (int64_t row = 0; row < batch && used > 0; ++row)
    std::copy_n(rows.data() + row * rows.dim(1) * width, used * width, more.mutable_data() + row * capacity * width);
  return more;
}

/// Rows [0, count) of x (B, count, width) become rows [first, first + count) of the cache.
void put(const Array& x, int64_t count, int64_t first, Array& cache) {
  const int64_t width = cache.dim(2);
  for (int64_t row = 0; row < cache.dim(0); ++row)
    std::copy_n(x.data() + row * count * width, count * width,
                cache.mutable_data() + (row * cache.dim(1) + first) * width);
}

}  // namespace

std::unique_ptr<MixerState> Gau::make_state(int64_t batch) const {
  if (!shape_.causal) throw std::logic_error("gau: a bidirectional mixer does not decode");
  return std::make_unique<GauDecodeState>(batch, config_.key_dim, unit_.hidden());
}

void Gau::make_room(MixerState& mixer_state, int64_t tokens) const {
  GauDecodeState& state = decode_state(mixer_state, config_.key_dim, unit_.hidden());
  const bool limited = config_.position_bias == RelativeBiasKind::toeplitz;
  check(!limited || tokens <= shape_.max_length, "gau: token {} is past the {} positions of this mixer", tokens - 1,
        shape_.max_length);
  if (tokens <= state.capacity) return;
  int64_t capacity = std::max({first_capacity, 2 * state.capacity, tokens});
  if (limited) capacity = std::min(capacity, shape_.max_length);
  state.keys = grown(state.keys, state.batch, state.position, capacity, state.key_width);
  state.values = grown(state.values, state.batch, state.position, capacity, state.value_width);
  if (const Var table = unit_.bias(capacity)) {
    const Array& all = table.value();  // b_d at capacity - 1 + d
    state.bias = Array(Shape{capacity});
    std::reverse_copy(all.data() + capacity - 1, all.data() + all.size(), state.bias.mutable_data());
  }
  state.capacity = capacity;
}

Var Gau::prefill(const Var& x, MixerState& mixer_state) const {
  GauDecodeState& state = decode_state(mixer_state, config_.key_dim, unit_.hidden());
  check(x.rank() == 3 && x.dim(0) == state.batch && x.dim(2) == shape_.width,
        "gau: prefill: x is {}, but must be ({}, T, {})", x.shape(), state.batch, shape_.width);
  check(state.position == 0, "gau: prefill needs a fresh state; this one has seen {} tokens", state.position);
  const int64_t length = x.dim(1);
  if (length == 0) return x;
  make_room(state, length);
  const Segments segments = Segments::full(state.batch, length);
  const GatedUnit::Parts parts = unit_.project(x, segments.positions());
  const Var y = unit_.output(parts.gate, attend(parts, segments, Context{}, !shape_.prefix));
  put(parts.views[1].value(), length, 0, state.keys);
  put(parts.value.value(), length, 0, state.values);
  state.position = length;
  return y;
}

Var Gau::step(const Var& x, MixerState& mixer_state) const {
  GauDecodeState& state = decode_state(mixer_state, config_.key_dim, unit_.hidden());
  const int64_t batch = state.batch, t = state.position;
  check(x.shape() == Shape{batch, shape_.width}, "gau: step: x is {}, but must be ({}, {})", x.shape(), batch,
        shape_.width);
  make_room(state, t + 1);
  const GatedUnit::StepParts parts = unit_.step_project(x.value(), t, state.decode());
  for (int64_t row = 0; row < batch; ++row) {
    const int64_t place = row * state.capacity + t;
    std::copy_n(parts.view(1, row), state.key_width, state.keys.mutable_data() + place * state.key_width);
    std::copy_n(parts.value(row), state.value_width, state.values.mutable_data() + place * state.value_width);
  }
  const KernelScales scales = unit_.scales(t + 1);
  const real* const bias = state.bias.empty() ? nullptr : state.bias.data() + state.capacity - 1 - t;
  Array gated(Shape{batch, state.value_width});
  real* const out = gated.mutable_data();
  const int64_t work = (t + 1) * (state.key_width + state.value_width);
  for_value_columns(batch, state.value_width, work, [&](int64_t row, int64_t begin, int64_t end) {
    const int64_t first = row * state.capacity;
    const kernels::AttentionCache cache{state.keys.data() + first * state.key_width,
                                        state.values.data() + first * state.value_width + begin,
                                        state.key_width,
                                        state.value_width,
                                        t + 1,
                                        state.key_width,
                                        end - begin};
    real* const y = out + row * state.value_width + begin;
    kernels::attention_decode(cache, config_.kernel, static_cast<real>(scales.logit), bias,
                              static_cast<real>(scales.output), parts.view(0, row), y);
    kernels::gate(parts.gate(row) + begin, y, y, end - begin);
  });
  ++state.position;
  return Var(unit_.step_output(gated, state.decode()));
}

}  // namespace capstan::CAPSTAN_PRECISION
