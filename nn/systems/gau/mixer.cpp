#include "nn/systems/gau/mixer.hpp"

#include "nn/mixer/prefix.hpp"
#include "nn/systems/quadratic/composed.hpp"

namespace capstan::CAPSTAN_PRECISION {

Gau::Gau(const Scope& scope, const MixerShape& shape, const GauConfig& config)
    : shape_(shape),
      config_(config),
      unit_(scope, shape, config, {{1, 1}, {config.key_dim, shape.causal, config.paper_length}, shape.max_length}) {}

Var Gau::attend(const GatedUnit::Parts& parts, const Segments& segments, const Context& context, bool causal) const {
  return attention(parts.views[0], parts.views[1], parts.value, unit_.bias(segments.longest()), segments,
                   unit_.attention_options(segments, context, causal));
}

Var Gau::forward(const Var& x, const Context& context) const {
  const GatedUnit::Parts parts = unit_.project(x, context.segments.positions());
  return unit_.output(parts.gate, mix_with_prefix(context, shape_.causal, [&](const Segments& segments, bool causal) {
                        return attend(parts, segments, context, causal);
                      }));
}

std::vector<MixingWeights> Gau::mixing_weights(const Var& x, const Context& context) const {
  const GatedUnit::Parts parts = unit_.project(x, context.segments.positions());
  return {{"attention", mix_with_prefix(context, shape_.causal, [&](const Segments& segments, bool causal) {
                          return attention_weights(parts.views[0], parts.views[1], unit_.bias(segments.longest()),
                                                   segments, unit_.attention_options(segments, context, causal));
                        }).value()}};
}

MixerCost Gau::cost(int64_t length) const {
  const double hidden = static_cast<double>(unit_.hidden()), key = static_cast<double>(config_.key_dim),
               t = static_cast<double>(length);
  const double seen = shape_.causal ? t / 2 : t;
  // The packed projection; u, v and attended values; z, q and k; two numbers for the softmax.
  const double saved = 5 * hidden + 4 * key + (config_.kernel == AttentionKernel::softmax ? 2 : 0);
  return {2 * seen * (hidden + key), 2 * t * (hidden + key), saved};
}

std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const GauConfig& config) {
  return std::make_unique<Gau>(scope, shape, config);
}

}  // namespace capstan::CAPSTAN_PRECISION
