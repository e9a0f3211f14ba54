// FLASH token by token: the state M of all full chunks and the rows of the current one.
#include <algorithm>

#include "core/array/select.hpp"
#include "core/base/error.hpp"
#include "core/products/gemm.hpp"
#include "core/products/kernels/gemv.hpp"
#include "nn/systems/flash/mixer.hpp"
#include "nn/systems/flash/shift.hpp"
#include "nn/systems/gated/kernels/passes.hpp"
#include "nn/systems/quadratic/kernels/decode.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

struct FlashDecodeState final : MixerState {
  FlashDecodeState(int64_t batch_, int64_t hidden_, int64_t width, const FlashConfig& config)
      : batch(batch_),
        hidden(hidden_),
        key_dim(config.key_dim),
        chunk(config.chunk),
        local(config.local),
        global(config.global),
        values(Shape{batch, chunk, hidden}) {
    if (config.shift_tokens) before = Array::zeros(Shape{batch, shifted_features(width)});
    if (local) local_keys = Array(Shape{batch, chunk, key_dim});
    if (!global) return;
    global_keys = Array(Shape{batch, chunk, key_dim});
    m = Array(Shape{batch, key_dim, hidden});
  }

  void reset() override {
    position = 0;
    if (!before.empty()) std::fill_n(before.mutable_data(), before.size(), real{0});
  }
  void select(const std::vector<int64_t>& rows) override {
    for (Array* const part : {&local_keys, &global_keys, &values, &m, &before}) *part = select_rows(*part, rows);
    batch = static_cast<int64_t>(rows.size());
  }
  int64_t elements(int64_t seen) const override {
    const int64_t row_numbers = hidden + (local ? key_dim : 0) + (global ? key_dim : 0);
    const int64_t shifted = before.empty() ? 0 : before.dim(1);
    return (global && seen >= chunk ? key_dim * hidden : 0) + std::min(seen, chunk) * row_numbers + shifted;
  }

  real* row(Array& rows, int64_t sequence, int64_t index) const {
    return rows.mutable_data() + (sequence * chunk + index) * rows.dim(2);
  }
  real* m_of(int64_t sequence) { return m.mutable_data() + sequence * key_dim * hidden; }
  /// M = beta M + k^T v over `count` rows.
  void fold(int64_t sequence, const real* k, const real* v, int64_t count, real beta) {
    gemm(key_dim, hidden, count, {k, key_dim, Transpose::yes}, {v, hidden}, m_of(sequence), hidden, 1, beta);
  }
  kernels::AttentionCache cache(int64_t sequence, int64_t count) {
    return {row(local_keys, sequence, 0), row(values, sequence, 0), key_dim, hidden, count, key_dim, hidden};
  }

  /// table: (1, 2 chunk - 1), entry chunk - 1 + d for distance d; undefined: none.
  void keep_bias(const Var& table) {
    if (!table) return;
    bias = Array(Shape{chunk});
    std::reverse_copy(table.value().data() + chunk - 1, table.value().data() + table.size(), bias.mutable_data());
  }
  /// b of the cached rows, oldest first, for the query that follows `current` others in its chunk.
  const real* bias_of(int64_t current) const { return bias.empty() ? nullptr : bias.data() + chunk - 1 - current; }

  /// x (B, D) with the shifted features of the preceding token. Keeps those of x for the next token.
  Array shift(const Array& x) {
    if (before.empty()) return x;
    const int64_t width = x.dim(1), moved = before.dim(1);
    Array shifted = x.clone();
    for (int64_t sequence = 0; sequence < batch; ++sequence) {
      std::copy_n(before.data() + sequence * moved, moved, shifted.mutable_data() + sequence * width);
      std::copy_n(x.data() + sequence * width, moved, before.mutable_data() + sequence * moved);
    }
    return shifted;
  }

  int64_t batch, hidden, key_dim, chunk, position = 0;
  bool local, global;
  Array local_keys, global_keys, values;  // (B, C, Z), (B, C, Z), (B, C, E): rows of the current chunk
  Array m;                                // (B, Z, E): M of the full chunks; undefined while there is none
  Array bias;                             // (C): entry C - 1 - d is b_d
  Array before;                           // (B, features): what the next token takes from the last one; empty: nothing
};

}  // namespace

std::unique_ptr<MixerState> Flash::make_state(int64_t batch) const {
  if (!shape_.causal) throw std::logic_error("flash: a bidirectional mixer does not decode");
  return new_state<FlashDecodeState>(batch, unit_.hidden(), shape_.width, config_);
}

Var Flash::prefill(const Var& x, MixerState& mixer_state) const {
  auto& state = own_state<FlashDecodeState>(mixer_state, "flash");
  check(x.rank() == 3 && x.dim(0) == state.batch && x.dim(2) == shape_.width,
        "flash: prefill: x is {}, but must be ({}, T, {})", x.shape(), state.batch, shape_.width);
  check(state.position == 0, "flash: prefill needs a fresh state; this one has seen {} tokens", state.position);
  const int64_t length = x.dim(1), folded = length / state.chunk * state.chunk;
  if (length == 0) return x;
  const Segments segments = Segments::full(state.batch, length);
  const Parts parts = project(x, segments);
  const Var y = unit_.output(parts.gate, mix(parts, segments, Context{}, !shape_.prefix));
  for (int64_t sequence = 0; sequence < state.batch; ++sequence) {
    const auto row = [&](const Var& all, int64_t t) {
      return all.value().data() + (sequence * length + t) * all.dim(2);
    };
    const auto keep = [&](const Var& from, Array& to) {
      std::copy_n(row(from, folded), (length - folded) * to.dim(2), state.row(to, sequence, 0));
    };
    keep(parts.value, state.values);
    if (config_.local) keep(parts.local_k, state.local_keys);
    if (!config_.global) continue;
    keep(parts.global_k, state.global_keys);
    if (folded > 0) state.fold(sequence, row(parts.global_k, 0), row(parts.value, 0), folded, 0);
  }
  if (!state.before.empty())
    for (int64_t sequence = 0; sequence < state.batch; ++sequence)
      std::copy_n(x.value().data() + ((sequence + 1) * length - 1) * shape_.width, state.before.dim(1),
                  state.before.mutable_data() + sequence * state.before.dim(1));
  state.keep_bias(unit_.bias(state.chunk));
  state.position = length;
  return y;
}

Var Flash::step(const Var& x, MixerState& mixer_state) const {
  auto& state = own_state<FlashDecodeState>(mixer_state, "flash");
  const int64_t batch = state.batch, current = state.position % state.chunk, folded = state.position - current;
  check(x.shape() == Shape{batch, shape_.width}, "flash: step: x is {}, but must be ({}, {})", x.shape(), batch,
        shape_.width);
  if (state.position == 0) state.keep_bias(unit_.bias(state.chunk));
  const GatedUnit::StepParts parts = unit_.step_project(state.shift(x.value()), state.position, state.decode());
  const int64_t global_view = config_.local ? 2 : 0;
  for (int64_t sequence = 0; sequence < batch; ++sequence) {
    std::copy_n(parts.value(sequence), state.hidden, state.row(state.values, sequence, current));
    if (config_.local)
      std::copy_n(parts.view(1, sequence), state.key_dim, state.row(state.local_keys, sequence, current));
    if (config_.global)
      std::copy_n(parts.view(global_view + 1, sequence), state.key_dim,
                  state.row(state.global_keys, sequence, current));
  }
  const KernelScales scales = unit_.scales(current + 1);
  const real global_scale = chunk_linear_scale(linear_options(true), folded);
  Array gated(Shape{batch, state.hidden});
  real* const out = gated.mutable_data();
  const int64_t work = (current + 1) * (state.key_dim + state.hidden) + (folded > 0 ? state.key_dim * state.hidden : 0);
  for_value_columns(batch, state.hidden, work, [&](int64_t sequence, int64_t begin, int64_t end) {
    real* const y = out + sequence * state.hidden + begin;
    std::fill_n(y, end - begin, real{0});
    if (config_.local) {
      kernels::AttentionCache cache = state.cache(sequence, current + 1);
      cache.values += begin, cache.value_width = end - begin;
      kernels::attention_decode(cache, config_.kernel, static_cast<real>(scales.logit), state.bias_of(current),
                                static_cast<real>(scales.output), parts.view(0, sequence), y);
    }
    if (config_.global && folded > 0)
      kernels::row_times_matrix(parts.view(global_view, sequence), state.key_dim, state.m_of(sequence) + begin,
                                state.hidden, end - begin, global_scale, y);
    kernels::gate(parts.gate(sequence) + begin, y, y, end - begin);
  });
  if (config_.global && current + 1 == state.chunk)
    for (int64_t sequence = 0; sequence < batch; ++sequence)
      state.fold(sequence, state.row(state.global_keys, sequence, 0), state.row(state.values, sequence, 0), state.chunk,
                 folded > 0 ? real{1} : real{0});
  ++state.position;
  return Var(unit_.step_output(gated, state.decode()));
}

}  // namespace capstan::CAPSTAN_PRECISION
