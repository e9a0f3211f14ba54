#include "nn/blocks/block.hpp"

#include "core/ops/math.hpp"
#include "nn/blocks/short_conv.hpp"
#include "nn/systems/make_mixer.hpp"

namespace capstan::CAPSTAN_PRECISION {

Block::Block(const Scope& scope, const MixerShape& shape, const LayerConfig& config, double dropout)
    : placement_(config.norm_placement),
      mixer_(make_mixer(scope / "mixer", shape, config.mixer)),
      mixer_norm_(scope / "mixer_norm", config.norm, shape.width),
      mixer_dropout_(scope / "mixer_dropout", dropout),
      feed_forward_dropout_(scope / "feed_forward_dropout", dropout) {
  if (config.short_conv > 0) mixer_ = make_short_conv(scope, shape.width, config.short_conv, std::move(mixer_));
  if (config.feed_forward.type == FeedForwardKind::none) return;
  feed_forward_norm_ = std::make_unique<Norm>(scope / "feed_forward_norm", config.norm, shape.width);
  feed_forward_ =
      std::make_unique<FeedForward>(scope / "feed_forward", config.feed_forward, shape.width, shape.output_gain);
}

template <class Mix, class Feed>
Var Block::wire(const Var& x, const Context& context, const Mix& mix, const Feed& feed) const {
  const auto residual = [&](const Var& stream, const Norm& norm, const Dropout& dropout, const auto& branch) {
    if (placement_ == NormPlacement::pre) return stream + dropout(branch(norm(stream)), context);
    return norm(stream + dropout(branch(stream), context));
  };
  const Var mixed = residual(x, mixer_norm_, mixer_dropout_, mix);
  if (!feed_forward_) return mixed;
  return residual(mixed, *feed_forward_norm_, feed_forward_dropout_, feed);
}

Var Block::forward(const Var& x, const Context& context) const {
  return wire(
      x, context, [&](const Var& h) { return mixer_->forward(h, context); },
      [&](const Var& h) { return (*feed_forward_)(h); });
}

std::vector<MixingWeights> Block::mixing_weights(const Var& x, const Context& context) const {
  return mixer_->mixing_weights(placement_ == NormPlacement::pre ? mixer_norm_(x) : x, context);
}

Var Block::prefill(const Var& x, MixerState& state) const {
  return wire(
      x, Context{}, [&](const Var& h) { return mixer_->prefill(h, state); },
      [&](const Var& h) { return (*feed_forward_)(h); });
}

Var Block::step(const Var& x, MixerState& state) const {
  return wire(
      x, Context{}, [&](const Var& h) { return mixer_->step(h, state); },
      [&](const Var& h) { return Var(feed_forward_->step(h.value(), state.decode())); });
}

}  // namespace capstan::CAPSTAN_PRECISION
