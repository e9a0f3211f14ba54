// Residual blocks. forward(), prefill() and step() must share one residual(), so that decoding is wired as training is:
// tests/nn/layers/test_layers.cpp and tests/models/test_decode.cpp.
#include "nn/blocks/block.hpp"

#include "core/autograd/tape.hpp"
#include "core/ops/dropout.hpp"
#include "core/ops/math.hpp"
#include "nn/blocks/short_conv.hpp"
#include "nn/layers/feed_forward.hpp"
#include "nn/systems/mixer_config.hpp"

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

template <class Branch>
Var Block::mixed(const Var& x, const Context& context, const Branch& mix) const {
  return residual(x, mixer_norm_, mixer_dropout_, context, mix);
}

template <class Branch>
Var Block::fed(const Var& x, const Context& context, const Branch& feed) const {
  return feed_forward_ ? residual(x, *feed_forward_norm_, feed_forward_dropout_, context, feed) : x;
}

template <class Branch>
Var Block::residual(const Var& x, const Norm& norm, const Dropout& dropout, const Context& context,
                    const Branch& branch) const {
  if (placement_ == NormPlacement::pre) return x + dropout(branch(norm(x)), context);
  return norm(x + dropout(branch(x), context));
}

Var Block::forward(const Var& x, const Context& context) const {
  const Var y = mixed(x, context, [&](const Var& h) { return mixer_->forward(h, context); });
  return fed(y, context, [&](const Var& h) { return (*feed_forward_)(h); });
}

Var Block::forward_recomputed(const Var& x, const std::shared_ptr<const Context>& context) const {
  const Var y = recompute(
      [this, context](const std::vector<Var>& in) {
        return mixed(in[0], *context, [&](const Var& h) { return mixer_->forward(h, *context); });
      },
      {x});
  if (!feed_forward_) return y;
  return recompute(
      [this, context](const std::vector<Var>& in) {
        return fed(in[0], *context, [&](const Var& h) { return (*feed_forward_)(h); });
      },
      {y});
}

std::vector<MixingWeights> Block::mixing_weights(const Var& x, const Context& context) const {
  return mixer_->mixing_weights(placement_ == NormPlacement::pre ? mixer_norm_(x) : x, context);
}

Var Block::prefill(const Var& x, MixerState& state) const {
  const Var y = mixed(x, Context{}, [&](const Var& h) { return mixer_->prefill(h, state); });
  return fed(y, Context{}, [&](const Var& h) { return (*feed_forward_)(h); });
}

Var Block::step(const Var& x, MixerState& state) const {
  const Var y = mixed(x, Context{}, [&](const Var& h) { return mixer_->step(h, state); });
  return fed(y, Context{}, [&](const Var& h) { return Var(feed_forward_->step(h.value(), state.decode())); });
}

}  // namespace capstan::CAPSTAN_PRECISION
