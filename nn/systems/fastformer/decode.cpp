// Fastformer token by token: the running sums of both pools.
#include "core/base/error.hpp"
#include "nn/systems/fastformer/mixer.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

struct FastformerDecodeState final : MixerState {
  FastformerDecodeState(int64_t batch, int64_t heads, int64_t width) : MixerState(batch), pools(batch, heads, width) {}
  void reset() override {
    MixerState::reset();
    pools.reset();
  }
  std::vector<Array*> parts() override {
    return {&pools.query.maximum, &pools.query.weight, &pools.query.average,
            &pools.key.maximum,   &pools.key.weight,   &pools.key.average};
  }
  int64_t elements(int64_t) const override { return 2 * (pools.query.average.dim(1) + 2 * pools.query.maximum.dim(1)); }

  FastformerState pools;
};

}  // namespace

std::unique_ptr<MixerState> Fastformer::make_state(int64_t batch) const {
  if (!shape_.causal) throw std::logic_error("fastformer: a bidirectional mixer does not decode");
  return new_state<FastformerDecodeState>(batch, config_.heads, shape_.width);
}

Var Fastformer::prefill(const Var& x, MixerState& mixer_state) const {
  auto& state = prefill_state<FastformerDecodeState>(mixer_state, "fastformer", x, shape_.width);
  if (x.dim(0) == 0 || x.dim(1) == 0) return x;
  const bool prefix = shape_.prefix && state.position(0) == 0;
  state.advance(x.dim(0), x.dim(1));
  const Var qk = packed_(x);
  const Array causal = fastformer_continue(qk.value(), weights(), state.pools);
  if (!prefix) return output(Var(causal));
  return output(fastformer(qk, weights(), Segments::full(x.dim(0), x.dim(1)), false));
}

Var Fastformer::step(const Var& x, MixerState& mixer_state) const {
  auto& state = step_state<FastformerDecodeState>(mixer_state, "fastformer", x, shape_.width);
  const int64_t batch = x.dim(0), width = shape_.width;
  state.advance(batch, 1);
  const Array qk = packed_.step(x.value(), state.decode());
  const int64_t stride = qk.dim(1);
  const Array u = fastformer_pools(qk.reshape({batch, 1, stride}), weights(), state.pools);
  Array y = to_r_.step(u.reshape({batch, width}), state.decode());
  real* const out = y.mutable_data();
  for (int64_t row = 0; row < batch; ++row)
    for (int64_t c = 0; c < width; ++c) out[row * width + c] += qk[row * stride + c];
  return Var(to_out_ ? to_out_->step(y, state.decode()) : y);
}

}  // namespace capstan::CAPSTAN_PRECISION
