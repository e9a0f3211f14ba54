// Fastformer token by token: the running sums of both pools.
#include "core/array/select.hpp"
#include "core/base/error.hpp"
#include "nn/systems/fastformer/mixer.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

struct FastformerDecodeState final : MixerState {
  FastformerDecodeState(int64_t batch, int64_t heads, int64_t width) : pools(batch, heads, width) {}
  void reset() override {
    pools.reset();
    position = 0;
  }
  void select(const std::vector<int64_t>& rows) override {
    for (AdditivePoolState* const pool : {&pools.query, &pools.key})
      for (Array* const part : {&pool->maximum, &pool->weight, &pool->average}) *part = select_rows(*part, rows);
  }
  int64_t elements(int64_t) const override { return 2 * (pools.query.average.dim(1) + 2 * pools.query.maximum.dim(1)); }
  int64_t batch() const { return pools.query.average.dim(0); }

  FastformerState pools;
  int64_t position = 0;
};

}  // namespace

std::unique_ptr<MixerState> Fastformer::make_state(int64_t batch) const {
  if (!shape_.causal) throw std::logic_error("fastformer: a bidirectional mixer does not decode");
  return new_state<FastformerDecodeState>(batch, config_.heads, shape_.width);
}

Var Fastformer::prefill(const Var& x, MixerState& mixer_state) const {
  auto& state = own_state<FastformerDecodeState>(mixer_state, "fastformer");
  check(x.rank() == 3 && x.dim(0) == state.batch() && x.dim(2) == shape_.width,
        "fastformer: prefill: x is {}, but must be ({}, T, {})", x.shape(), state.batch(), shape_.width);
  if (x.dim(1) == 0) return x;
  const bool prefix = shape_.prefix && state.position == 0;
  state.position += x.dim(1);
  const Var qk = packed_(x);
  const Array causal = fastformer_continue(qk.value(), weights(), state.pools);
  if (!prefix) return output(Var(causal));
  return output(fastformer(qk, weights(), Segments::full(x.dim(0), x.dim(1)), false));
}

Var Fastformer::step(const Var& x, MixerState& mixer_state) const {
  auto& state = own_state<FastformerDecodeState>(mixer_state, "fastformer");
  const int64_t batch = state.batch(), width = shape_.width;
  check(x.shape() == Shape{batch, width}, "fastformer: step: x is {}, but must be ({}, {})", x.shape(), batch, width);
  ++state.position;
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
