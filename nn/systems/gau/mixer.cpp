// A decode state is a cache of keys and values and the bias of all distances so far, reversed, so that a step reads it
// in the order of the cache. The bias grows by doubling.
#include "nn/systems/gau/mixer.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "nn/mixer/decoding_mixer.hpp"
#include "nn/mixer/prefixes.hpp"
#include "nn/systems/gated/kernels/passes.hpp"
#include "nn/systems/gated/unit.hpp"
#include "nn/systems/quadratic/composed.hpp"
#include "nn/systems/quadratic/kernels/decode.hpp"
#include "nn/systems/quadratic/key_value_cache.hpp"
#include "nn/systems/quadratic/op.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// The keys and values of each sequence, and the bias that all share.
struct GauDecodeState final : KeyValueState {
  using KeyValueState::KeyValueState;
  Array bias;  // entry size - 1 - d is b_d, so that a row of the cache reads it forwards; empty: none
};

/// Parameters as GatedUnit names them; a Toeplitz bias knows max_length positions. Rows of gain and offset: query, key.
class Gau final : public DecodingMixer<GauDecodeState> {
 public:
  Gau(const Scope& scope, const MixerShape& shape, const GauConfig& config)
      : DecodingMixer("gau", shape),
        config_(config),
        unit_(scope, shape, config, {{1, 1}, {config.key_dim, shape.causal, config.paper_length}, shape.max_length}) {}

  Var forward(const Var& x, const Context& context) const override {
    const GatedUnit::Parts parts = unit_.project(x, context.segments.positions());
    return unit_.output(parts.gate, mix_with_prefix(context, shape_.causal, [&](const Segments& segments, bool causal) {
                          return attend(parts, segments, causal);
                        }));
  }

  std::vector<MixingWeights> mixing_weights(const Var& x, const Context& context) const override {
    const GatedUnit::Parts parts = unit_.project(x, context.segments.positions());
    return {{"attention", mix_with_prefix(context, shape_.causal, [&](const Segments& segments, bool causal) {
                            return attention_weights(parts.views[0], parts.views[1], unit_.bias(segments.longest()),
                                                     segments, unit_.attention_options(segments, causal));
                          }).value()}};
  }

  MixerCost cost(int64_t length) const override {
    const double hidden = static_cast<double>(unit_.hidden()), key = static_cast<double>(config_.key_dim),
                 t = static_cast<double>(length);
    const double seen = shape_.causal ? t / 2 : t;
    // The packed projection; u, v and attended values; z, q and k; two numbers for the softmax.
    const double saved = 5 * hidden + 4 * key + (config_.kernel == AttentionKernel::softmax ? 2 : 0);
    return {2 * seen * (hidden + key), 2 * t * (hidden + key), saved};
  }

 private:
  Var attend(const GatedUnit::Parts& parts, const Segments& segments, bool causal) const {
    return attention(parts.views[0], parts.views[1], parts.value, unit_.bias(segments.longest()), segments,
                     unit_.attention_options(segments, causal));
  }

  std::unique_ptr<MixerState> fresh_state(int64_t batch) const override {
    return new_state<GauDecodeState>(batch, config_.key_dim, unit_.hidden());
  }

  /// Lets the bias of a decode state serve `tokens` tokens. Throws std::invalid_argument past a Toeplitz bias.
  void prepare_bias(Array& bias, int64_t tokens) const {
    constexpr int64_t fewest = 64;
    const bool limited = config_.position_bias == RelativeBiasKind::toeplitz;
    check(!limited || tokens <= shape_.max_length, "gau: token {} is past the {} positions of this mixer", tokens - 1,
          shape_.max_length);
    if (tokens <= bias.size()) return;
    int64_t length = std::max({fewest, 2 * bias.size(), tokens});
    if (limited) length = std::min(length, shape_.max_length);
    if (const Var table = unit_.bias(length)) {
      const Array& entries = table.value();  // b_d at length - 1 + d
      Array reversed(Shape{length});
      std::reverse_copy(entries.data() + length - 1, entries.data() + entries.size(), reversed.mutable_data());
      bias = std::move(reversed);
    }
  }

  Var read(const Var& x, GauDecodeState& state) const override {
    const int64_t batch = x.dim(0), length = x.dim(1);
    const int64_t past = state.position(0);
    prepare_bias(state.bias, past + length);
    const bool prefix = shape_.prefix && past == 0;
    const GatedUnit::Parts parts = unit_.project(x, positions_from(past, batch, length));
    state.cache.append(state.positions(), batch, length, parts.views[1].value().data(), state.key_width,
                       parts.value.value().data(), state.value_width);
    const Var bias = unit_.bias(past + length);
    const AttentionOptions options = unit_.attention_options(Segments::full(batch, length), !prefix, past);
    Var y = unit_.output(parts.gate, Var(state.cache.attend_last(past, length, options, bias ? bias.value() : Array(),
                                                                 parts.views[0].value().data(), state.key_width)));
    state.advance(batch, length);  // last: keys past the position count for nothing, so a throw changes nothing
    return y;
  }

  Var next(const Var& x, GauDecodeState& state) const override {
    const int64_t rows = x.dim(0);
    int64_t longest = 0, tokens = 0;
    for (int64_t row = 0; row < rows; ++row) {
      longest = std::max(longest, state.position(row) + 1);
      tokens += state.position(row) + 1;
    }
    prepare_bias(state.bias, longest);
    const GatedUnit::StepParts parts =
        unit_.step_project(x.value(), first_positions(state.positions(), rows), state.decode());
    state.cache.append(state.positions(), rows, 1, parts.view(1, 0), state.key_width, parts.value(0), parts.uvz.dim(1));
    Array gated(Shape{rows, state.value_width});
    real* const out = gated.mutable_data();
    const int64_t work = tokens / std::max<int64_t>(rows, 1) * (state.key_width + state.value_width);
    for_value_columns(rows, state.value_width, work, [&](int64_t row, int64_t begin, int64_t end) {
      const int64_t count = state.position(row) + 1;
      const KernelScales scales = unit_.scales(count);
      const real* const bias = state.bias.empty() ? nullptr : state.bias.data() + state.bias.size() - count;
      real* const y = out + row * state.value_width + begin;
      kernels::attention_decode(state.cache.part(row, count, 0, state.key_width, begin, end - begin), config_.kernel,
                                static_cast<real>(scales.logit), bias, static_cast<real>(scales.output),
                                parts.view(0, row), y);
      kernels::gate(parts.gate(row) + begin, y, y, end - begin);
    });
    Var y(unit_.step_output(gated, state.decode()));
    state.advance(rows, 1);
    return y;
  }

  GauConfig config_;
  GatedUnit unit_;
};

}  // namespace

std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const GauConfig& config) {
  return std::make_unique<Gau>(scope, shape, config);
}

}  // namespace capstan::CAPSTAN_PRECISION
