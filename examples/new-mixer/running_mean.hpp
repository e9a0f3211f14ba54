// A mixer of our own: every token sees the mean of what stands before it.
#pragma once

#include "nn/layers/layers.hpp"
#include "nn/mixers/mixer.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// y_t = W_o (sigmoid(g_t) * mean of v_s over the tokens s that t sees), with (v, g) = W x.  x: (B, T, D) -> (B, T, D).
/// Bidirectionally a token sees its whole document, causally itself and what stands before it. Parameters to_vg.weight
/// (2D, D), to_out.weight (D, D) and biases.
class RunningMean final : public Mixer {
 public:
  RunningMean(const Scope& scope, const MixerShape& shape);

  Var forward(const Var& x, const Context& context) const override;

  // Generation, token by token: the state holds the sum so far, so a step costs the same at any position.
  std::unique_ptr<MixerState> make_state(int64_t batch) const override;
  Var prefill(const Var& x, MixerState& state) const override;
  Var step(const Var& x, MixerState& state) const override;

  MixerCost cost(int64_t length) const override;

 private:
  MixerShape shape_;
  Linear to_vg_, to_out_;
};

}  // namespace capstan::CAPSTAN_PRECISION
