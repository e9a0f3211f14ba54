#include "nn/systems/attention/mixer.hpp"

#include <cmath>

#include "core/base/error.hpp"
#include "core/kernels/rotary.hpp"
#include "core/ops/shape.hpp"
#include "nn/mixer/prefix.hpp"
#include "nn/systems/quadratic/composed.hpp"
#include "nn/systems/quadratic/key_value_cache.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

struct AttentionState final : MixerState {
  AttentionState(int64_t batch, int64_t width_, int64_t heads_)
      : width(width_), heads(heads_), cache(batch, width_, width_) {}
  void reset() override { cache.clear(); }
  void select(const std::vector<int64_t>& rows) override { cache.select(rows); }
  int64_t elements(int64_t position) const override { return 2 * width * position; }

  int64_t width, heads;
  KeyValueCache cache;
};

/// Throws std::invalid_argument for a state that some other mixer made.
KeyValueCache& cache_of(MixerState& state, int64_t width, int64_t heads) {
  auto* const attention = dynamic_cast<AttentionState*>(&state);
  check(attention != nullptr && attention->width == width && attention->heads == heads,
        "attention: this state was made for another mixer");
  return attention->cache;
}

/// Softmax attention with scale 1 / sqrt(D / H).  Parameters to_qkv.weight (3D, D),
/// query_bias, key_bias, value_bias (D), to_out.
class MultiHeadAttention final : public Mixer {
 public:
  MultiHeadAttention(const Scope& scope, const MixerShape& shape, const AttentionConfig& config)
      : shape_(shape), config_(config), weight_dropout_(scope / "attention_dropout", config.attention_dropout) {
    const int64_t width = shape.width;
    check(config.heads > 0 && width % config.heads == 0, "attention: width {} is not a multiple of {} heads", width,
          config.heads);
    if (config.rotary.enabled) rotary_pairs(config.rotary.options(), width / config.heads);
    const ParamOptions vector{/*decay=*/false}, key_vector{/*decay=*/false, /*gauge=*/!config.rotary.enabled};
    ParamOptions qkv;
    qkv.stacked = {width, width, width};
    qkv_weight_ = (scope / "to_qkv").param("weight", {3 * width, width}, init::lecun_normal(), qkv);
    if (config.bias) {
      query_bias_ = scope.param("query_bias", {width}, init::zeros(), vector);
      value_bias_ = scope.param("value_bias", {width}, init::zeros(), vector);
    }
    if (config.key_bias) key_bias_ = scope.param("key_bias", {width}, init::zeros(), key_vector);
    if (config.output_projection)
      to_out_ = std::make_unique<Linear>(scope / "to_out", LinearConfig{width, width, config.bias, shape.output_gain});
  }

  Var forward(const Var& x, const Context& context) const override {
    const Var qkv = project(x, context.segments.positions());
    if (!shape_.causal) return output(mix(qkv, context.segments, context, false));
    return output(mix_with_prefix(
        context, [&](const Segments& segments, bool causal) { return mix(qkv, segments, context, causal); }));
  }

  std::unique_ptr<MixerState> make_state(int64_t batch) const override {
    if (!shape_.causal) throw std::logic_error("attention: a bidirectional mixer does not decode");
    return std::make_unique<AttentionState>(batch, shape_.width, config_.heads);
  }

  Var prefill(const Var& x, MixerState& state) const override {
    const int64_t width = shape_.width;
    KeyValueCache& cache = cache_of(state, width, config_.heads);
    check(x.rank() == 3 && x.dim(0) == cache.batch() && x.dim(2) == width,
          "attention: prefill: x is {}, but must be ({}, T, {})", x.shape(), cache.batch(), width);
    check(cache.count() == 0, "attention: prefill needs a fresh state; this one has seen {} tokens", cache.count());
    if (x.dim(1) == 0) return x;
    const Segments segments = Segments::full(x.dim(0), x.dim(1));
    const Var qkv = project(x, segments.positions());
    const real* const first = qkv.value().data();
    cache.append(first + width, 3 * width, first + 2 * width, 3 * width, x.dim(1));
    return output(mix(qkv, segments, Context{}, !shape_.prefix));
  }

  Var step(const Var& x, MixerState& state) const override {
    const int64_t width = shape_.width, heads = config_.heads;
    KeyValueCache& cache = cache_of(state, width, config_.heads);
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
    query.scale = static_cast<real>(options().scale);
    Array y(Shape{batch, width});
    cache.attend(query, first, 3 * width, y.mutable_data());
    return Var(to_out_ ? to_out_->step(y, state.decode()) : y);
  }

  MixerCost cost(int64_t length) const override {
    const double width = static_cast<double>(shape_.width), heads = static_cast<double>(config_.heads),
                 t = static_cast<double>(length);
    const double seen = shape_.causal ? t / 2 : t;
    // q|k|v, the heads' outputs, and two elements per head for the softmax.
    return {2 * seen * 2 * width, 2 * t * 2 * width, 4 * width + 2 * heads};
  }

  std::vector<MixingWeights> mixing_weights(const Var& x, const Context& context) const override {
    const int64_t width = shape_.width;
    const std::vector<Var> parts = split(project(x, context.segments.positions()), 2, {width, width, width});
    return {{"attention", attention_weights(parts[0], parts[1], Var(), context.segments, options()).value()}};
  }

 private:
  AttentionOptions options() const {
    AttentionOptions options;
    options.heads = config_.heads;
    options.causal = shape_.causal;
    options.scale = 1 / std::sqrt(static_cast<double>(shape_.width) / static_cast<double>(config_.heads));
    return options;
  }

  /// Of q|k|v; undefined where there is none.
  Var packed_bias() const {
    if (!query_bias_ && !key_bias_) return Var();
    const auto part = [this](const Var& bias) { return bias ? bias : Var(Array::zeros(Shape{shape_.width})); };
    return concatenate({part(query_bias_), part(key_bias_), part(value_bias_)}, 0);
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
  Var mix(const Var& qkv, const Segments& segments, const Context& context, bool causal) const {
    AttentionOptions mixing = options();
    mixing.causal = causal;
    mixing.dropout = weight_dropout_.options(context);
    return attention_packed(qkv, segments, mixing);
  }

  Var output(const Var& y) const { return to_out_ ? (*to_out_)(y) : y; }

  MixerShape shape_;
  AttentionConfig config_;
  Var qkv_weight_, query_bias_, key_bias_, value_bias_;
  std::unique_ptr<Linear> to_out_;
  Dropout weight_dropout_;
};

}  // namespace

std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const AttentionConfig& config) {
  return std::make_unique<MultiHeadAttention>(scope, shape, config);
}

}  // namespace capstan::CAPSTAN_PRECISION
