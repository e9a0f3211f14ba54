#include "nn/systems/attention/mixer.hpp"

#include <cmath>

#include "core/base/error.hpp"
#include "core/ops/shape.hpp"
#include "nn/mixer/prefix.hpp"
#include "nn/systems/quadratic/composed.hpp"

namespace capstan::CAPSTAN_PRECISION {

MultiHeadAttention::MultiHeadAttention(const Scope& scope, const MixerShape& shape, const AttentionConfig& config)
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

AttentionOptions MultiHeadAttention::options(bool causal) const {
  AttentionOptions options;
  options.heads = config_.heads;
  options.causal = causal;
  options.scale = 1 / std::sqrt(static_cast<double>(shape_.width) / static_cast<double>(config_.heads));
  return options;
}

Var MultiHeadAttention::packed_bias() const {
  if (!query_bias_ && !key_bias_) return Var();
  const auto part = [this](const Var& bias) { return bias ? bias : Var(Array::zeros(Shape{shape_.width})); };
  return concatenate({part(query_bias_), part(key_bias_), part(value_bias_)}, 0);
}

Var MultiHeadAttention::project(const Var& x, const Ids& positions) const {
  const int64_t width = shape_.width, heads = config_.heads;
  check(x.rank() == 3 && x.dim(2) == width, "attention: x must be (B, T, {}), got shape {}", width, x.shape());
  const Var qkv = linear(x, qkv_weight_, packed_bias());
  if (!config_.rotary.enabled) return qkv;
  RotaryOptions options = config_.rotary.options();
  options.heads = 2 * heads;  // the values stay
  const Var turned = rotary(reshape(qkv, {x.dim(0), x.dim(1), 3 * heads, width / heads}), positions, options);
  return reshape(turned, {x.dim(0), x.dim(1), 3 * width});
}

Var MultiHeadAttention::mix(const Var& qkv, const Segments& segments, const Context& context, bool causal) const {
  AttentionOptions mixing = options(causal);
  mixing.dropout = weight_dropout_.options(context);
  return attention_packed(qkv, segments, mixing);
}

Var MultiHeadAttention::forward(const Var& x, const Context& context) const {
  const Var qkv = project(x, context.segments.positions());
  return output(mix_with_prefix(context, shape_.causal, [&](const Segments& segments, bool causal) {
    return mix(qkv, segments, context, causal);
  }));
}

std::vector<MixingWeights> MultiHeadAttention::mixing_weights(const Var& x, const Context& context) const {
  const int64_t width = shape_.width;
  const std::vector<Var> parts = split(project(x, context.segments.positions()), 2, {width, width, width});
  return {{"attention", mix_with_prefix(context, shape_.causal, [&](const Segments& segments, bool causal) {
                          return attention_weights(parts[0], parts[1], Var(), segments, options(causal));
                        }).value()}};
}

MixerCost MultiHeadAttention::cost(int64_t length) const {
  const double width = static_cast<double>(shape_.width), heads = static_cast<double>(config_.heads),
               t = static_cast<double>(length);
  const double seen = shape_.causal ? t / 2 : t;
  // q|k|v, what to_out reads of the heads' outputs, and two elements per head for the softmax.
  return {2 * seen * 2 * width, 2 * t * 2 * width, (to_out_ ? 4 : 3) * width + 2 * heads};
}

std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const AttentionConfig& config) {
  return std::make_unique<MultiHeadAttention>(scope, shape, config);
}

}  // namespace capstan::CAPSTAN_PRECISION
