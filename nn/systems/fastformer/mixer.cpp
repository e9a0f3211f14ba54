#include "nn/systems/fastformer/mixer.hpp"

#include "core/base/error.hpp"
#include "core/ops/math.hpp"
#include "core/ops/shape.hpp"
#include "nn/mixer/prefix.hpp"
#include "nn/systems/fastformer/composed.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// (H, D/H) -> (H, D), 0 outside the head's own features.
Var block_diagonal(const Var& weight) {
  const int64_t heads = weight.dim(0), head_width = weight.dim(1);
  Array own = Array::zeros(Shape{heads, heads, 1});
  for (int64_t head = 0; head < heads; ++head) own.mutable_data()[head * heads + head] = 1;
  return reshape(reshape(weight, {heads, 1, head_width}) * Var(own), {heads, heads * head_width});
}

LinearConfig packed_projection(int64_t width, const FastformerConfig& config) {
  const std::vector<int64_t> parts(config.value == FastformerValue::own ? 3 : 2, width);
  return {width, static_cast<int64_t>(parts.size()) * width, config.bias, 1, /*output=*/false, parts};
}

}  // namespace

Fastformer::Logits::Logits(const Scope& scope, const MixerShape& shape, const FastformerConfig& config) {
  check(config.heads > 0 && shape.width % config.heads == 0, "fastformer: width {} is not a multiple of {} heads",
        shape.width, config.heads);
  const bool per_head = config.logits == FastformerLogits::per_head;
  ParamOptions options;
  options.table = per_head;  // a vector of its own for each head
  weight = scope.param("weight", {config.heads, per_head ? shape.width / config.heads : shape.width},
                       init::lecun_normal(), options);
  if (config.logit_bias) bias = scope.param("bias", {config.heads}, init::zeros(), {/*decay=*/false, /*gauge=*/true});
}

Fastformer::Fastformer(const Scope& scope, const MixerShape& shape, const FastformerConfig& config)
    : shape_(shape),
      config_(config),
      packed_(scope / (config.value == FastformerValue::own ? "to_qkv" : "to_qk"),
              packed_projection(shape.width, config)),
      to_r_(scope / "to_r", {shape.width, shape.width, config.bias, config.output_projection ? 1 : shape.output_gain}),
      query_logits_(scope / "query_logits", shape, config),
      key_logits_(scope / "key_logits", shape, config) {
  if (config.output_projection)
    to_out_ = std::make_unique<Linear>(scope / "to_out",
                                       LinearConfig{shape.width, shape.width, config.bias, shape.output_gain});
}

FastformerWeights Fastformer::weights() const {
  const bool per_head = config_.logits == FastformerLogits::per_head;
  const auto wide = [&](const Var& weight) { return per_head ? block_diagonal(weight) : weight; };
  return {wide(query_logits_.weight), wide(key_logits_.weight), query_logits_.bias,
          key_logits_.bias,           to_r_.weight(),           to_r_.bias()};
}

Var Fastformer::forward(const Var& x, const Context& context) const {
  const Var qk = packed_(x);
  const FastformerWeights all = weights();
  return output(mix_with_prefix(context, shape_.causal, [&](const Segments& segments, bool causal) {
    return fastformer(qk, all, segments, causal);
  }));
}

std::vector<MixingWeights> Fastformer::mixing_weights(const Var& x, const Context& context) const {
  const Var qk = packed_(x);
  const FastformerWeights all = weights();
  const auto pool = [&](Var FastformerPoolWeights::*which) {
    return mix_with_prefix(context, shape_.causal,
                           [&](const Segments& segments, bool causal) {
                             return fastformer_pool_weights(qk, all, segments, causal).*which;
                           })
        .value();
  };
  return {{"query pool", pool(&FastformerPoolWeights::query), /*pool=*/true},
          {"key pool", pool(&FastformerPoolWeights::key), /*pool=*/true}};
}

MixerCost Fastformer::cost(int64_t) const {
  const double width = static_cast<double>(shape_.width), heads = static_cast<double>(config_.heads);
  const double pools = 2 * (3 * width + width) + width;  // two averages, two products, the query added
  const double saved =
      static_cast<double>(packed_.weight().dim(0)) + 2 * heads + (config_.output_projection ? width : 0);
  return {pools, pools, saved};
}

std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const FastformerConfig& config) {
  return std::make_unique<Fastformer>(scope, shape, config);
}

}  // namespace capstan::CAPSTAN_PRECISION
