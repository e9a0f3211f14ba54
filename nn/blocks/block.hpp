// Residual blocks: a mixer and a feed-forward network, each added to the stream of activations. Made and run by Stack
// (models/stack.hpp). forward(), prefill() and step() share one residual(), so that decoding is wired as training is:
// tests/nn/layers/test_layers.cpp, tests/models/test_decode.cpp.
#pragma once

#include <memory>
#include <vector>

#include "nn/layers/feed_forward.hpp"
#include "nn/layers/layers.hpp"
#include "nn/mixer/mixer.hpp"
#include "nn/params/scope.hpp"
#include "nn/systems/mixer_config.hpp"

namespace capstan {

enum class NormPlacement { pre, post };

inline std::vector<EnumName<NormPlacement>> enum_names(NormPlacement) {
  return {{NormPlacement::pre, "pre"}, {NormPlacement::post, "post"}};
}

/// One kind of block, used `repeat` times in a row.
struct LayerConfig {
  MixerConfig mixer;
  int64_t short_conv = 0;  // taps; 0: none
  FeedForwardConfig feed_forward;
  NormConfig norm;
  NormPlacement norm_placement = NormPlacement::pre;
  int64_t repeat = 1;
};

template <class Fields>
void describe(Fields& f, LayerConfig& c) {
  f("mixer", c.mixer, any(), "how tokens exchange information");
  f("short_conv", c.short_conv, between(0, 64),
    "tokens that a convolution in front of the mixer sees: each channel is added to a weighted sum of itself and those "
    "before it; 4 is usual; 0 = none");
  f("feed_forward", c.feed_forward, any(), "the network after the mixer");
  f("norm", c.norm.type, any(),
    "of mixer and feed-forward network: layer (mean and variance), rms (root mean square), scale (rms with one gain) "
    "or none");
  f("norm_placement", c.norm_placement, any(), "pre: x + f(norm(x)); post: norm(x + f(x))");
  f("repeat", c.repeat, between(1, 1000), "number of layers of this kind in a row");
}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

/// (B, T, D) -> (B, T, D).  pre: x + drop(mixer(norm(x))), then x + drop(feed_forward(norm(x))); post: the norm is
/// taken of the sum instead. Parameters mixer_norm, mixer, feed_forward_norm, feed_forward, and with short_conv that of
/// make_short_conv().
class Block {
 public:
  Block(const Scope& scope, const MixerShape& shape, const LayerConfig& config, double dropout);

  Var forward(const Var& x, const Context& context) const;
  /// The same; mixer and feed-forward network, each with its norm and sum, keep only what they read and compute the
  /// rest again in their pullbacks. The block must outlive the tape.
  Var forward_recomputed(const Var& x, const std::shared_ptr<const Context>& context) const;
  std::unique_ptr<MixerState> make_state(int64_t batch) const { return mixer_->make_state(batch); }
  /// As Mixer::prefill() and step(), for the whole block; no dropout.
  Var prefill(const Var& x, MixerState& state) const;
  Var step(const Var& x, MixerState& state) const;
  const Mixer& mixer() const { return *mixer_; }
  /// Weights of the mixer for input x.
  std::vector<MixingWeights> mixing_weights(const Var& x, const Context& context) const;

 private:
  /// x with what the mixer, called by `mix`, adds to it; and with what the feed-forward network adds, if there is one.
  template <class Branch>
  Var mixed(const Var& x, const Context& context, const Branch& mix) const;
  template <class Branch>
  Var fed(const Var& x, const Context& context, const Branch& feed) const;
  template <class Branch>
  Var residual(const Var& x, const Norm& norm, const Dropout& dropout, const Context& context,
               const Branch& branch) const;

  NormPlacement placement_;
  std::unique_ptr<Mixer> mixer_;
  Norm mixer_norm_;
  Dropout mixer_dropout_;
  std::unique_ptr<Norm> feed_forward_norm_;
  std::unique_ptr<FeedForward> feed_forward_;
  Dropout feed_forward_dropout_;
};

}  // namespace capstan::CAPSTAN_PRECISION
