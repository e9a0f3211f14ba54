// A short convolution in front of a mixer: each token first sees the few before it.
#pragma once

#include <memory>
#include <vector>

#include "nn/mixer/mixer.hpp"
#include "nn/params/scope.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// y = mixer(x + conv(x)), with a depthwise causal convolution of `taps` tokens within each document
/// (core/ops/conv.hpp), also in models that read in both directions. After the Canon layers of Allen-Zhu 2025 ("Physics
/// of Language Models: Part 4.1", in front of the mixer, with a residual and without an activation); Arora et al. 2023
/// (Zoology, arXiv 2312.04927) put one in front of mixers for recall. Parameter short_conv.kernel (D, taps), the last
/// tap that of the token itself.
class ShortConv final : public Mixer {
 public:
  /// `scope` is that of the block. taps >= 1.
  ShortConv(const Scope& scope, int64_t width, int64_t taps, std::unique_ptr<Mixer> mixer);

  Var forward(const Var& x, const Context& context) const override;
  std::unique_ptr<MixerState> make_state(int64_t batch) const override;
  Var prefill(const Var& x, MixerState& state) const override;
  Var step(const Var& x, MixerState& state) const override;
  MixerCost cost(int64_t length) const override;
  std::vector<MixingWeights> mixing_weights(const Var& x, const Context& context) const override;
  Array position_bias(int64_t longest) const override { return mixer_->position_bias(longest); }

 private:
  Var convolved(const Var& x, const Segments& segments) const;

  std::unique_ptr<Mixer> mixer_;
  Var kernel_;
};

}  // namespace capstan::CAPSTAN_PRECISION
