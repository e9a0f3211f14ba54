#include "nn/systems/flash/mixer.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/ops/math.hpp"
#include "nn/mixer/prefix.hpp"
#include "nn/systems/flash/shift.hpp"
#include "nn/systems/quadratic/composed.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

GatedUnitConfig unit_config(const FlashConfig& config) {
  check(config.local || config.global, "flash: neither the local nor the global part is on");
  check(config.chunk >= 1, "flash: chunk must be at least 1, got {}", config.chunk);
  GatedUnitConfig unit = config;
  if (!config.local) unit.position_bias = RelativeBiasKind::none;  // belongs to the local part
  return unit;
}

GatedUnitShape unit_shape(const FlashConfig& config, bool causal) {
  // The global part has no kernel that would make weak agreement small: where tokens are alike, gains of 1 would give
  // the mean of all values at several times the size of the input, which hides the rest (README.md). With these, q k
  // starts as the mean of the features' products.
  const double global_gain = 1 / std::sqrt(static_cast<double>(config.key_dim));
  std::vector<double> gains;
  if (config.local) gains.insert(gains.end(), 2, 1);
  if (config.global) gains.insert(gains.end(), 2, global_gain);
  return {gains, {config.key_dim, causal, config.chunk, config.chunk}, config.chunk};
}

}  // namespace

Flash::Flash(const Scope& scope, const MixerShape& shape, const FlashConfig& config)
    : shape_(shape), config_(config), unit_(scope, shape, unit_config(config), unit_shape(config, shape.causal)) {}

ChunkLinearOptions Flash::linear_options(bool causal) const {
  ChunkLinearOptions options{config_.chunk, causal, ChunkNormaliser::counted, static_cast<double>(config_.chunk)};
  if (config_.normaliser == Normaliser::paper) options.normaliser = ChunkNormaliser::chunks;
  if (config_.normaliser == Normaliser::chunk && causal) options.normaliser = ChunkNormaliser::constant;
  return options;
}

Flash::Parts Flash::project(const Var& x, const Segments& segments) const {
  return project(config_.shift_tokens ? shift_tokens(x, segments) : x, segments.positions());
}

Flash::Parts Flash::project(const Var& shifted, const Ids& positions) const {
  const GatedUnit::Parts unit = unit_.project(shifted, positions);
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

Var Flash::mix(const Parts& parts, const Segments& segments, const Context& context, bool causal) const {
  Var local, global;
  if (config_.local)
    local = attention(parts.local_q, parts.local_k, parts.value, local_bias(segments), segments,
                      unit_.attention_options(segments, context, causal));
  if (config_.global)
    global = chunk_linear_attention(parts.global_q, parts.global_k, parts.value, segments, linear_options(causal));
  return local && global ? local + global : local ? local : global;
}

Var Flash::forward(const Var& x, const Context& context) const {
  const Parts parts = project(x, context.segments);
  return unit_.output(parts.gate, mix_with_prefix(context, shape_.causal, [&](const Segments& segments, bool causal) {
                        return mix(parts, segments, context, causal);
                      }));
}

std::vector<MixingWeights> Flash::mixing_weights(const Var& x, const Context& context) const {
  if (!config_.local) return {};
  const Parts parts = project(x, context.segments);
  return {{"attention in chunks", mix_with_prefix(context, shape_.causal, [&](const Segments& segments, bool causal) {
                                    return attention_weights(parts.local_q, parts.local_k, local_bias(segments),
                                                             segments,
                                                             unit_.attention_options(segments, context, causal));
                                  }).value()}};
}

MixerCost Flash::cost(int64_t length) const {
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

std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const FlashConfig& config) {
  return std::make_unique<Flash>(scope, shape, config);
}

}  // namespace capstan::CAPSTAN_PRECISION
