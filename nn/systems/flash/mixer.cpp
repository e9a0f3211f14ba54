// Both parts read views of one projection and are added before the gate. A decode state has the rows of the current
// chunk for the local part, and M of the full ones for the global: when a chunk is full, its rows are folded into M.
// Prefill and steps may follow each other at any place; tests/models/test_decode.cpp and
// tests/nn/systems/flash/test_mixer.cpp hold that.
#include "nn/systems/flash/mixer.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/ops/math.hpp"
#include "core/ops/softmax.hpp"
#include "core/products/gemm.hpp"
#include "core/products/kernels/gemv.hpp"
#include "nn/mixer/decoding_mixer.hpp"
#include "nn/mixer/prefixes.hpp"
#include "nn/systems/flash/chunk_linear.hpp"
#include "nn/systems/gated/kernels/passes.hpp"
#include "nn/systems/gated/unit.hpp"
#include "nn/systems/quadratic/composed.hpp"
#include "nn/systems/quadratic/kernels/decode.hpp"
#include "nn/systems/quadratic/kernels/tile.hpp"
#include "nn/systems/quadratic/op.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

GatedUnitConfig unit_config(const FlashConfig& config) {
  check(config.local || config.global, "flash: neither the local nor the global part is on");
  check(config.chunk >= 1, "flash: chunk must be at least 1, got {}", config.chunk);
  GatedUnitConfig unit = config;
  if (!config.local) unit.position_bias = RelativeBiasKind::none;  // belongs to the local part
  return unit;
}

/// The views that the parts need, and how they start.
GatedUnitShape unit_shape(const FlashConfig& config, bool causal) {
  // The global part has no kernel that would make weak agreement small: where tokens are alike, gains of 1 would give
  // the mean of all values at several times the size of the input, which hides the rest (nn/systems/flash/README.md).
  // With these, q k starts as the mean of the features' products.
  const double global_gain = 1 / std::sqrt(static_cast<double>(config.key_dim));
  std::vector<double> gains;
  if (config.local) gains.insert(gains.end(), 2, 1);
  if (config.global) gains.insert(gains.end(), 2, global_gain);
  return {gains, {config.key_dim, causal, config.chunk, config.chunk}, config.chunk};
}

/// What each sequence remembers. Members of a part that is off are empty.
struct FlashDecodeState final : MixerState {
  FlashDecodeState(int64_t batch_, int64_t hidden_, const FlashConfig& config)
      : MixerState(batch_),
        hidden(hidden_),
        key_dim(config.key_dim),
        chunk(config.chunk),
        local(config.local),
        global(config.global),
        values(Shape{batch_, chunk, hidden}) {
    if (local) local_keys = Array(Shape{batch_, chunk, key_dim});
    if (!global) return;
    global_keys = Array(Shape{batch_, chunk, key_dim});
    m = Array(Shape{batch_, key_dim, hidden});
  }

  std::vector<Array*> parts() override { return {&local_keys, &global_keys, &values, &m}; }
  int64_t elements(int64_t seen) const override {
    const int64_t row_numbers = hidden + (local ? key_dim : 0) + (global ? key_dim : 0);
    return (global && seen >= chunk ? key_dim * hidden : 0) + std::min(seen, chunk) * row_numbers;
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
    if (table) {
      Array reversed(Shape{chunk});
      std::reverse_copy(table.value().data() + chunk - 1, table.value().data() + table.size(), reversed.mutable_data());
      bias = std::move(reversed);
    }
    knows_bias = true;  // last, or a step after one that found no memory would do without the bias
  }
  /// b of the cached rows, oldest first, for the query that follows `current` others in its chunk.
  const real* bias_of(int64_t current) const { return bias.empty() ? nullptr : bias.data() + chunk - 1 - current; }

  /// Tokens of a sequence in its current chunk, and in the full ones.
  int64_t current(int64_t sequence) const { return position(sequence) % chunk; }
  int64_t folded(int64_t sequence) const { return position(sequence) - current(sequence); }
  /// The rows of the current chunk, `rows`, and those of the tokens that follow: (B, current + T, ...).
  Array with_current(Array& rows, const Var& next) const {
    const int64_t length = next.dim(1), width = next.dim(2), kept = current(0);
    if (kept == 0) return next.value();
    Array joined(Shape{batch(), kept + length, width});
    for (int64_t sequence = 0; sequence < batch(); ++sequence) {
      real* const to = joined.mutable_data() + sequence * (kept + length) * width;
      std::copy_n(row(rows, sequence, 0), kept * width, to);
      std::copy_n(next.value().data() + sequence * length * width, length * width, to + kept * width);
    }
    return joined;
  }
  /// Of `joined`, which with_current() made, the rows that belong to the chunk that is then the current one become
  /// `rows`.
  void keep_last(const Array& joined, Array& rows) const {
    const int64_t count = joined.dim(1), width = joined.dim(2), kept = count % chunk;
    for (int64_t sequence = 0; sequence < batch(); ++sequence)
      std::copy_n(joined.data() + ((sequence + 1) * count - kept) * width, kept * width, row(rows, sequence, 0));
  }

  int64_t hidden, key_dim, chunk;
  bool local, global, knows_bias = false;
  Array local_keys, global_keys, values;  // (B, C, Z), (B, C, Z), (B, C, E): rows of the current chunk
  Array m;                                // (B, Z, E): M of the full chunks; undefined while there is none
  Array bias;                             // (C): entry C - 1 - d is b_d
};

/// (u * (L + G)) W_o: L is attention() among the tokens of a chunk, G chunk_linear_attention() over the chunks in front
/// (bidirectional: over the whole document). Parameters as GatedUnit names them; rows of gain and offset: local_q,
/// local_k, global_q, global_k, without those of a part that is off. Documents may have any length.
class Flash final : public DecodingMixer<FlashDecodeState> {
 public:
  /// Throws std::invalid_argument when both parts are off.
  Flash(const Scope& scope, const MixerShape& shape, const FlashConfig& config)
      : DecodingMixer("flash", shape),
        config_(config),
        unit_(scope, shape, unit_config(config), unit_shape(config, shape.causal)) {}

  Var forward(const Var& x, const Context& context) const override {
    const Parts parts = project(x, context.segments.positions());
    return unit_.output(parts.gate, mix_with_prefix(context, shape_.causal, [&](const Segments& segments, bool causal) {
                          return mix(parts, segments, causal);
                        }));
  }

  std::vector<MixingWeights> mixing_weights(const Var& x, const Context& context) const override {
    if (!config_.local) return {};
    const Parts parts = project(x, context.segments.positions());
    return {{"attention in chunks", mix_with_prefix(context, shape_.causal, [&](const Segments& segments, bool causal) {
                                      return attention_weights(parts.local_q, parts.local_k, local_bias(segments),
                                                               segments, unit_.attention_options(segments, causal));
                                    }).value()}};
  }

  MixerCost cost(int64_t length) const override {
    const double key = static_cast<double>(config_.key_dim), hidden = static_cast<double>(unit_.hidden()),
                 seen = static_cast<double>(std::min(config_.chunk, length));
    // It keeps the packed projection, u, v, the sum of both parts, z and its views.
    MixerCost cost{0, 0, 5 * hidden + 2 * key};
    if (config_.local) {
      cost.mixing_flops += 2 * (key + hidden) * (shape_.causal ? seen / 2 : seen);
      cost.decode_flops += 2 * (key + hidden) * seen;
      cost.saved_elements += 2 * key;
      // The softmax keeps two numbers of a row, and its own output beside the sum of both parts.
      if (config_.kernel == AttentionKernel::softmax) cost.saved_elements += 2 + (config_.global ? hidden : 0);
    }
    if (config_.global && (!shape_.causal || length > config_.chunk)) {
      cost.mixing_flops += 4 * key * hidden;  // into the state and out of it
      cost.decode_flops += 4 * key * hidden;
    }
    if (config_.global) cost.saved_elements += 2 * key;
    return cost;
  }

 private:
  struct Parts {
    Var gate, value;                           // (B, T, E)
    Var local_q, local_k, global_q, global_k;  // (B, T, Z); undefined for a part that is off
  };

  /// Options of the global part, its normaliser n included.
  ChunkLinearOptions linear_options(bool causal) const {
    ChunkLinearOptions options{config_.chunk, causal};
    if (config_.normaliser == Normaliser::paper) options.normaliser = ChunkNormaliser::chunks;
    options.bf16 = unit_.in_bf16();
    return options;
  }

  Parts project(const Var& x, const Ids& positions) const {
    const GatedUnit::Parts unit = unit_.project(x, positions);
    Parts parts;
    parts.gate = unit.gate;
    parts.value = unit.value;
    auto view = unit.views.begin();
    if (config_.local) {
      parts.local_q = *view++;
      parts.local_k = *view++;
    }
    if (config_.global) {
      parts.global_q = *view++;
      parts.global_k = *view++;
    }
    return parts;
  }

  /// L + G
  Var mix(const Parts& parts, const Segments& segments, bool causal) const {
    Var local, global;
    if (config_.local)
      local = attention(parts.local_q, parts.local_k, parts.value, local_bias(segments), segments,
                        unit_.attention_options(segments, causal));
    if (config_.global)
      global = chunk_linear_attention(parts.global_q, parts.global_k, parts.value, segments, linear_options(causal));
    return local && global ? local + global : local ? local : global;
  }

  std::unique_ptr<MixerState> fresh_state(int64_t batch) const override {
    return new_state<FlashDecodeState>(batch, unit_.hidden(), config_);
  }

  Var read(const Var& x, FlashDecodeState& state) const override {
    const int64_t batch = x.dim(0), length = x.dim(1);
    const int64_t position = state.position(0), current = state.current(0);
    const bool prefix = shape_.prefix && position == 0;
    const Segments segments = Segments::full(batch, length);
    const Parts parts = project(x, positions_from(position, batch, length));
    const Array values = state.with_current(state.values, parts.value);
    Var mixed = prefix ? mix(parts, segments, /*causal=*/false) : Var();
    const auto add = [&](const Array& part) {
      if (!prefix) mixed = mixed ? mixed + Var(part) : Var(part);
    };
    if (config_.local) {
      const Array keys = state.with_current(state.local_keys, parts.local_k);
      const Var bias = unit_.bias(std::min(config_.chunk, current + length));
      add(attention_continue({batch, length, current, current + length, parts.local_q.value().data(), state.key_dim,
                              keys, values, bias ? bias.value() : Array()},
                             unit_.attention_options(segments, true, position)));
      state.keep_last(keys, state.local_keys);
    }
    if (config_.global) {
      const Array keys = state.with_current(state.global_keys, parts.global_k);
      add(chunk_linear_continue(parts.global_q.value(), keys, values, position, state.m, linear_options(true)));
      state.keep_last(keys, state.global_keys);
    }
    state.keep_last(values, state.values);
    state.advance(batch, length);
    return unit_.output(parts.gate, mixed);
  }

  Var next(const Var& x, FlashDecodeState& state) const override {
    const int64_t rows = x.dim(0);
    if (!state.knows_bias) state.keep_bias(unit_.bias(state.chunk));
    const GatedUnit::StepParts parts =
        unit_.step_project(x.value(), first_positions(state.positions(), rows), state.decode());
    const int64_t global_view = config_.local ? 2 : 0;
    int64_t work = 0;
    for (int64_t sequence = 0; sequence < rows; ++sequence) {
      const int64_t current = state.current(sequence);
      std::copy_n(parts.value(sequence), state.hidden, state.row(state.values, sequence, current));
      if (config_.local)
        std::copy_n(parts.view(1, sequence), state.key_dim, state.row(state.local_keys, sequence, current));
      if (config_.global)
        std::copy_n(parts.view(global_view + 1, sequence), state.key_dim,
                    state.row(state.global_keys, sequence, current));
      work += (current + 1) * (state.key_dim + state.hidden) +
              (state.folded(sequence) > 0 ? state.key_dim * state.hidden : 0);
    }
    Array gated(Shape{rows, state.hidden});
    real* const out = gated.mutable_data();
    for_value_columns(
        rows, state.hidden, work / std::max<int64_t>(rows, 1), [&](int64_t sequence, int64_t begin, int64_t end) {
          real* const y = out + sequence * state.hidden + begin;
          const int64_t current = state.current(sequence), folded = state.folded(sequence);
          std::fill_n(y, end - begin, real{0});
          if (config_.local) {
            const bool of_document = config_.normaliser == Normaliser::document;
            const KernelScales scales = unit_.scales((of_document ? folded : 0) + current + 1);
            kernels::AttentionCache cache = state.cache(sequence, current + 1);
            cache.values += begin, cache.value_width = end - begin;
            kernels::attention_decode(cache, config_.kernel, static_cast<real>(scales.logit), state.bias_of(current),
                                      static_cast<real>(scales.output), parts.view(0, sequence), y);
          }
          if (config_.global && folded > 0)
            kernels::row_times_matrix(parts.view(global_view, sequence), state.key_dim, state.m_of(sequence) + begin,
                                      state.hidden, end - begin, chunk_linear_scale(linear_options(true), folded), y);
          kernels::gate(parts.gate(sequence) + begin, y, y, end - begin);
        });
    for (int64_t sequence = 0; sequence < rows; ++sequence)
      if (config_.global && state.current(sequence) + 1 == state.chunk)
        state.fold(sequence, state.row(state.global_keys, sequence, 0), state.row(state.values, sequence, 0),
                   state.chunk, state.folded(sequence) > 0 ? real{1} : real{0});
    state.advance(rows, 1);
    return Var(unit_.step_output(gated, state.decode()));
  }

  /// b of the quadratic part.
  Var local_bias(const Segments& segments) const { return unit_.bias(std::min(config_.chunk, segments.longest())); }

  FlashConfig config_;
  GatedUnit unit_;
};

}  // namespace

std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const FlashConfig& config) {
  return std::make_unique<Flash>(scope, shape, config);
}

}  // namespace capstan::CAPSTAN_PRECISION
