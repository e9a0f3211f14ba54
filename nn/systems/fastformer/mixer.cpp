// Logits of a head that read its own features alone are logits of all features whose weight is zero elsewhere
// (block_diagonal): the op has one form. Decoding keeps the state of both pools and multiplies by packed weights.
#include "nn/systems/fastformer/mixer.hpp"

#include "core/base/error.hpp"
#include "core/ops/math.hpp"
#include "core/ops/shape.hpp"
#include "nn/layers/layers.hpp"
#include "nn/mixer/decoding_mixer.hpp"
#include "nn/mixer/prefixes.hpp"
#include "nn/systems/fastformer/composed.hpp"
#include "nn/systems/fastformer/op.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// (H, D/H) -> (H, D), 0 outside the head's own features.
Var block_diagonal(const Var& weight) {
  const int64_t heads = weight.dim(0), head_width = weight.dim(1);
  Array own_features = Array::zeros(Shape{heads, heads, 1});
  for (int64_t head = 0; head < heads; ++head) own_features.mutable_data()[head * heads + head] = 1;
  return reshape(reshape(weight, {heads, 1, head_width}) * Var(own_features), {heads, heads * head_width});
}

LinearConfig packed_projection(int64_t width, const FastformerConfig& config) {
  const std::vector<int64_t> parts(config.value == FastformerValue::own ? 3 : 2, width);
  return {width, static_cast<int64_t>(parts.size()) * width, config.bias, 1, /*output=*/false, parts};
}

/// The weight of one kind of logits.
Var logits_weight(const Scope& scope, const MixerShape& shape, const FastformerConfig& config) {
  check(config.heads > 0 && shape.width % config.heads == 0, "fastformer: width {} is not a multiple of {} heads",
        shape.width, config.heads);
  const bool per_head = config.logits == FastformerLogits::per_head;
  ParamOptions options;
  options.table = per_head;  // a vector of its own for each head
  return scope.param("weight", {config.heads, per_head ? shape.width / config.heads : shape.width},
                     init::lecun_normal(), options);
}

/// The running sums of both pools.
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

/// y = W_o (W_r u + b_r + q) + b_o with u of nn/systems/fastformer/op.hpp.  Parameters to_qk.weight (2D, D) and .bias
/// or, with values of its own, to_qkv.weight (3D, D) and .bias; query_logits and key_logits .weight (H, D) or, per
/// head, (H, D/H); to_r.weight (D, D) and .bias, to_out.
class Fastformer final : public DecodingMixer<FastformerDecodeState> {
 public:
  Fastformer(const Scope& scope, const MixerShape& shape, const FastformerConfig& config)
      : DecodingMixer("fastformer", shape),
        config_(config),
        packed_(scope / (config.value == FastformerValue::own ? "to_qkv" : "to_qk"),
                packed_projection(shape.width, config)),
        to_r_(scope / "to_r",
              {shape.width, shape.width, config.bias, config.output_projection ? 1 : shape.output_gain}),
        query_logits_(logits_weight(scope / "query_logits", shape, config)),
        key_logits_(logits_weight(scope / "key_logits", shape, config)) {
    if (config.output_projection)
      to_out_ = std::make_unique<Linear>(scope / "to_out",
                                         LinearConfig{shape.width, shape.width, config.bias, shape.output_gain});
  }

  Var forward(const Var& x, const Context& context) const override {
    const Var qk = packed_(x);
    const FastformerWeights parameters = weights();
    return output(mix_with_prefix(context, shape_.causal, [&](const Segments& segments, bool causal) {
      return fastformer(qk, parameters, segments, causal);
    }));
  }

  std::vector<MixingWeights> mixing_weights(const Var& x, const Context& context) const override {
    const Var qk = packed_(x);
    const FastformerWeights parameters = weights();
    const auto pool = [&](Var FastformerPoolWeights::*which) {
      return mix_with_prefix(context, shape_.causal,
                             [&](const Segments& segments, bool causal) {
                               return fastformer_pool_weights(qk, parameters, segments, causal).*which;
                             })
          .value();
    };
    return {{"query pool", pool(&FastformerPoolWeights::query), /*pool=*/true},
            {"key pool", pool(&FastformerPoolWeights::key), /*pool=*/true}};
  }

  MixerCost cost(int64_t) const override {
    const double width = static_cast<double>(shape_.width), heads = static_cast<double>(config_.heads);
    const double pools = 2 * (3 * width + width) + width;  // two averages, two products, the query added
    const double saved =
        static_cast<double>(packed_.weight().dim(0)) + 2 * heads + (config_.output_projection ? width : 0);
    return {pools, pools, saved};
  }

 private:
  FastformerWeights weights() const {
    const bool per_head = config_.logits == FastformerLogits::per_head;
    const auto wide = [&](const Var& weight) { return per_head ? block_diagonal(weight) : weight; };
    return {wide(query_logits_), wide(key_logits_), to_r_.weight(), to_r_.bias()};
  }

  std::unique_ptr<MixerState> fresh_state(int64_t batch) const override {
    return new_state<FastformerDecodeState>(batch, config_.heads, shape_.width);
  }

  Var read(const Var& x, FastformerDecodeState& state) const override {
    const bool prefix = shape_.prefix && state.position(0) == 0;
    const Var qk = packed_(x);
    FastformerState pools = state.pools.clone();
    // Computed for a prefix, too, although its outputs are those of the bidirectional op: this moves the pools on.
    const Array causal = fastformer_continue(qk.value(), weights(), pools);
    Var y = output(prefix ? fastformer(qk, weights(), Segments::full(x.dim(0), x.dim(1)), false) : Var(causal));
    state.pools = std::move(pools);
    state.advance(x.dim(0), x.dim(1));
    return y;
  }

  Var next(const Var& x, FastformerDecodeState& state) const override {
    const int64_t batch = x.dim(0), width = shape_.width;
    const Array qk = packed_.step(x.value(), state.decode());
    const int64_t stride = qk.dim(1);
    FastformerState pools = state.pools.clone();
    const Array u = fastformer_pools(qk.reshape({batch, 1, stride}), weights(), pools);
    Array y = to_r_.step(u.reshape({batch, width}), state.decode());
    real* const out = y.mutable_data();
    for (int64_t row = 0; row < batch; ++row)
      for (int64_t c = 0; c < width; ++c) out[row * width + c] += qk[row * stride + c];
    if (to_out_) y = to_out_->step(y, state.decode());
    state.pools = std::move(pools);
    state.advance(batch, 1);
    return Var(y);
  }

  Var output(const Var& y) const { return to_out_ ? (*to_out_)(y) : y; }

  FastformerConfig config_;
  Linear packed_, to_r_;  // packed: q|k or q|k|v
  Var query_logits_, key_logits_;
  std::unique_ptr<Linear> to_out_;
};

}  // namespace

std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const FastformerConfig& config) {
  return std::make_unique<Fastformer>(scope, shape, config);
}

}  // namespace capstan::CAPSTAN_PRECISION
