// forward() projects to q|k|v at once, turns queries and keys by their positions and calls attention_packed(). A decode
// state keeps turned keys and values, so a step turns the new token alone.
#include "nn/systems/attention/mixer.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/fused/kernels/rotary.hpp"
#include "core/fused/rotary_tables.hpp"
#include "core/machine/parallel.hpp"
#include "core/ops/ops.hpp"
#include "nn/layers/layers.hpp"
#include "nn/layers/rotary_config.hpp"
#include "nn/mixer/decoding_mixer.hpp"
#include "nn/mixer/prefixes.hpp"
#include "nn/systems/quadratic/composed.hpp"
#include "nn/systems/quadratic/kernels/decode.hpp"
#include "nn/systems/quadratic/key_value_cache.hpp"
#include "nn/systems/quadratic/op.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// Multiply-adds of a step below which a second thread costs more than it saves.
constexpr int64_t serial_work = 1 << 16;

/// Softmax attention with scale 1 / sqrt(D / H).  Parameters to_qkv.weight (3D, D),
/// query_bias, value_bias (D), to_out.
class MultiHeadAttention final : public DecodingMixer<KeyValueState> {
 public:
  MultiHeadAttention(const Scope& scope, const MixerShape& shape, const AttentionConfig& config)
      : DecodingMixer("attention", shape), config_(config) {
    const int64_t width = shape.width;
    check(config.heads > 0 && width % config.heads == 0, "attention: width {} is not a multiple of {} heads", width,
          config.heads);
    if (config.rotary.enabled) rotary_pairs(config.rotary.options(), width / config.heads);
    const ParamOptions vector{/*decay=*/false};
    ParamOptions qkv;
    qkv.stacked = {width, width, width};
    qkv_weight_ = (scope / "to_qkv").param("weight", {3 * width, width}, init::lecun_normal(), qkv);
    if (config.bias) {
      query_bias_ = scope.param("query_bias", {width}, init::zeros(), vector);
      value_bias_ = scope.param("value_bias", {width}, init::zeros(), vector);
    }
    if (config.output_projection)
      to_out_ = std::make_unique<Linear>(scope / "to_out", LinearConfig{width, width, config.bias, shape.output_gain});
  }

  Var forward(const Var& x, const Context& context) const override {
    const Var qkv = project(x, context.segments.positions());
    return output(mix_with_prefix(context, shape_.causal,
                                  [&](const Segments& segments, bool causal) { return mix(qkv, segments, causal); }));
  }

  std::vector<MixingWeights> mixing_weights(const Var& x, const Context& context) const override {
    const int64_t width = shape_.width;
    const std::vector<Var> parts = split(project(x, context.segments.positions()), 2, {width, width, width});
    return {{"attention", mix_with_prefix(context, shape_.causal, [&](const Segments& segments, bool causal) {
                            return attention_weights(parts[0], parts[1], Var(), segments, options(causal));
                          }).value()}};
  }

  MixerCost cost(int64_t length) const override {
    const double width = static_cast<double>(shape_.width), heads = static_cast<double>(config_.heads),
                 t = static_cast<double>(length);
    const double seen = shape_.causal ? t / 2 : t;
    // q|k|v, what to_out reads of the heads' outputs, and two elements per head for the softmax.
    return {2 * seen * 2 * width, 2 * t * 2 * width, (to_out_ ? 4 : 3) * width + 2 * heads};
  }

 private:
  AttentionOptions options(bool causal) const {
    AttentionOptions options;
    options.heads = config_.heads;
    options.causal = causal;
    options.scale = 1 / std::sqrt(static_cast<double>(shape_.width) / static_cast<double>(config_.heads));
    return options;
  }

  /// Bias of q|k|v, or undefined.
  Var packed_bias() const {
    if (!query_bias_) return Var();
    return concatenate({query_bias_, Var(Array::zeros(Shape{shape_.width})), value_bias_}, 0);
  }

  /// x: (B, T, D) -> q|k|v (B, T, 3D), queries and keys turned by `positions`.
  Var project(const Var& x, const Ids& positions) const {
    const int64_t width = shape_.width, heads = config_.heads;
    check(x.rank() == 3 && x.dim(2) == width, "attention: x must be (B, T, {}), got shape {}", width, x.shape());
    const Var qkv = linear(x, qkv_weight_, packed_bias());
    if (!config_.rotary.enabled) return qkv;
    RotaryOptions options = config_.rotary.options();
    options.heads = 2 * heads;  // the values stay
    const Var turned = rotary(reshape(qkv, {x.dim(0), x.dim(1), 3 * heads, width / heads}), positions, options);
    return reshape(turned, {x.dim(0), x.dim(1), 3 * width});
  }

  /// `segments`: the context's, or those of its prefixes.
  Var mix(const Var& qkv, const Segments& segments, bool causal) const {
    AttentionOptions mixing = options(causal);
    mixing.bf16 = !qkv_weight_.bf16().empty();
    return attention_packed(qkv, segments, mixing);
  }

  std::unique_ptr<MixerState> fresh_state(int64_t batch) const override {
    return new_state<KeyValueState>(batch, shape_.width, shape_.width);
  }

  Var read(const Var& x, KeyValueState& state) const override {
    const int64_t width = shape_.width;
    const int64_t batch = x.dim(0), length = x.dim(1);
    const int64_t position = state.position(0);
    const bool prefix = shape_.prefix && position == 0;
    const Var qkv = project(x, positions_from(position, batch, length));
    const real* const first = qkv.value().data();
    state.cache.append(state.positions(), batch, length, first + width, 3 * width, first + 2 * width, 3 * width);
    Var y = output(Var(state.cache.attend_last(position, length, options(!prefix), Array(), first, 3 * width)));
    state.advance(batch, length);  // last: keys past the position count for nothing, so a throw changes nothing
    return y;
  }

  Var next(const Var& x, KeyValueState& state) const override {
    const int64_t width = shape_.width, heads = config_.heads, head = width / heads;
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
    const auto scale = static_cast<real>(options(shape_.causal).scale);
    Array y(Shape{rows, width});
    real* const out = y.mutable_data();
    int64_t tokens = 0;
    for (int64_t row = 0; row < rows; ++row) tokens += state.position(row) + 1;
    const auto attend_head = [&](int64_t unit) {
      const int64_t row = unit / heads, begin = unit % heads * head;
      kernels::attention_decode(state.cache.part(row, state.position(row) + 1, begin, head, begin, head),
                                AttentionKernel::softmax, scale, nullptr, 1, first + row * 3 * width + begin,
                                out + row * width + begin);
    };
    if (tokens * 2 * width < serial_work)
      for (int64_t unit = 0; unit < rows * heads; ++unit) attend_head(unit);
    else
      parallel_units(rows * heads, attend_head);
    if (to_out_) y = to_out_->step(y, state.decode());
    state.advance(rows, 1);
    return Var(y);
  }

  Var output(const Var& y) const { return to_out_ ? (*to_out_)(y) : y; }

  AttentionConfig config_;
  Var qkv_weight_, query_bias_, value_bias_;
  std::unique_ptr<Linear> to_out_;
};

}  // namespace

std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const AttentionConfig& config) {
  return std::make_unique<MultiHeadAttention>(scope, shape, config);
}

}  // namespace capstan::CAPSTAN_PRECISION
