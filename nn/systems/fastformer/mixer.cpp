#include "nn/systems/fastformer/mixer.hpp"

#include "core/array/select.hpp"
#include "core/base/error.hpp"
#include "core/ops/math.hpp"
#include "core/ops/shape.hpp"
#include "nn/mixer/prefix.hpp"
#include "nn/systems/fastformer/composed.hpp"

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

/// Throws std::invalid_argument for a state that some other kind of mixer made.
FastformerDecodeState& decode_state(MixerState& state, int64_t heads, int64_t width) {
  auto* const mine = dynamic_cast<FastformerDecodeState*>(&state);
  check(mine != nullptr && mine->pools.query.maximum.dim(1) == heads && mine->pools.query.average.dim(1) == width,
        "fastformer: this state was made for another mixer");
  return *mine;
}

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

/// y = W_o (W_r u + b_r + q) + b_o with u of nn/systems/fastformer/op.hpp.  Parameters to_qk.weight (2D, D) and bias (2D)
/// or, with values of its own, to_qkv.weight (3D, D) and bias (3D); query_logits and key_logits .weight (H, D) or, per head, (H, D/H) and .bias (H),
/// to_r.weight (D, D) and bias, to_out.
class Fastformer final : public Mixer {
 public:
  Fastformer(const Scope& scope, const MixerShape& shape, const FastformerConfig& config)
      : shape_(shape),
        config_(config),
        packed_(scope / (config.value == FastformerValue::own ? "to_qkv" : "to_qk"),
                packed_projection(shape.width, config)),
        to_r_(scope / "to_r",
              {shape.width, shape.width, config.bias, config.output_projection ? 1 : shape.output_gain}),
        query_logits_(scope / "query_logits", shape, config),
        key_logits_(scope / "key_logits", shape, config) {
    if (config.output_projection)
      to_out_ = std::make_unique<Linear>(scope / "to_out",
                                         LinearConfig{shape.width, shape.width, config.bias, shape.output_gain});
  }

  Var forward(const Var& x, const Context& context) const override {
    const Var qk = packed_(x);
    const FastformerWeights all = weights();
    if (!shape_.causal) return output(fastformer(qk, all, context.segments, false));
    return output(mix_with_prefix(
        context, [&](const Segments& segments, bool causal) { return fastformer(qk, all, segments, causal); }));
  }

  std::unique_ptr<MixerState> make_state(int64_t batch) const override {
    if (!shape_.causal) throw std::logic_error("fastformer: a bidirectional mixer does not decode");
    return std::make_unique<FastformerDecodeState>(batch, config_.heads, shape_.width);
  }

  Var prefill(const Var& x, MixerState& mixer_state) const override {
    FastformerDecodeState& state = decode_state(mixer_state, config_.heads, shape_.width);
    check(x.rank() == 3 && x.dim(0) == state.batch() && x.dim(2) == shape_.width,
          "fastformer: prefill: x is {}, but must be ({}, T, {})", x.shape(), state.batch(), shape_.width);
    check(state.position == 0, "fastformer: prefill needs a fresh state; this one has seen {} tokens", state.position);
    state.position = x.dim(1);
    if (x.dim(1) == 0) return x;
    const Var qk = packed_(x);
    const Array causal = fastformer_continue(qk.value(), weights(), state.pools);
    if (!shape_.prefix) return output(Var(causal));
    return output(fastformer(qk, weights(), Segments::full(x.dim(0), x.dim(1)), false));
  }

  Var step(const Var& x, MixerState& mixer_state) const override {
    FastformerDecodeState& state = decode_state(mixer_state, config_.heads, shape_.width);
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

  MixerCost cost(int64_t) const override {
    const double width = static_cast<double>(shape_.width), heads = static_cast<double>(config_.heads);
    const double pools = 2 * (3 * width + width) + width;  // two averages, two products, the query added
    const double saved =
        static_cast<double>(packed_.weight().dim(0)) + 2 * heads + (config_.output_projection ? width : 0);
    return {pools, pools, saved};
  }

  std::vector<MixingWeights> mixing_weights(const Var& x, const Context& context) const override {
    const FastformerPoolWeights pools = fastformer_pool_weights(packed_(x), weights(), context.segments, shape_.causal);
    return {{"query pool", pools.query.value(), /*pool=*/true}, {"key pool", pools.key.value(), /*pool=*/true}};
  }

 private:
  FastformerWeights weights() const {
    const bool per_head = config_.logits == FastformerLogits::per_head;
    const auto wide = [&](const Var& weight) { return per_head ? block_diagonal(weight) : weight; };
    return {wide(query_logits_.weight), wide(key_logits_.weight), query_logits_.bias,
            key_logits_.bias,           to_r_.weight(),           to_r_.bias()};
  }

  Var output(const Var& y) const { return to_out_ ? (*to_out_)(y) : y; }
  /// Weight and bias of one kind of logits, whose bias is undefined where there is none.
  struct Logits {
    Logits(const Scope& scope, const MixerShape& shape, const FastformerConfig& config) {
      check(config.heads > 0 && shape.width % config.heads == 0, "fastformer: width {} is not a multiple of {} heads",
            shape.width, config.heads);
      const bool per_head = config.logits == FastformerLogits::per_head;
      ParamOptions options;
      options.table = per_head;  // a vector of its own for each head
      weight = scope.param("weight", {config.heads, per_head ? shape.width / config.heads : shape.width},
                           init::lecun_normal(), options);
      if (config.logit_bias)
        bias = scope.param("bias", {config.heads}, init::zeros(), {/*decay=*/false, /*gauge=*/true});
    }
    Var weight, bias;
  };

  MixerShape shape_;
  FastformerConfig config_;
  Linear packed_, to_r_;  // packed: q|k or q|k|v
  Logits query_logits_, key_logits_;
  std::unique_ptr<Linear> to_out_;
};

}  // namespace

std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const FastformerConfig& config) {
  return std::make_unique<Fastformer>(scope, shape, config);
}

}  // namespace capstan::CAPSTAN_PRECISION
