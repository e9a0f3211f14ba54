// The mixer with forward() alone: ForwardMixer decodes by calling it again for each token, over all tokens so far.
#include "running_mean.hpp"
#include "nn/mixer/prefixes.hpp"

#include "core/ops/ops.hpp"
#include "nn/layers/layers.hpp"
#include "nn/mixer/forward_mixer.hpp"
#include "nn/mixer/mixer.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// (B, T, T): entry (t, s) is 1 / (number of tokens that t sees) where t sees s, else 0. The spans are the documents of
/// each row, without padding: a mixer that keeps to them can be trained on packed documents as well.
Array averaging_weights(const Segments& segments, bool causal) {
  const int64_t length = segments.length();
  Array weights = Array::zeros({segments.batch(), length, length});
  for (const Segments::Span& span : segments.spans()) {
    for (int64_t t = span.begin; t < span.end; ++t) {
      const int64_t end = causal ? t + 1 : span.end;
      real* const row = weights.mutable_data() + (span.row * length + t) * length;
      for (int64_t s = span.begin; s < end; ++s) row[s] = real{1} / static_cast<real>(end - span.begin);
    }
  }
  return weights;
}

/// Every parameter is made through the scope, which names it: blocks.0.mixer.to_vg.weight. The last projection starts
/// with the gain that the model asks for, which keeps the activations of deep stacks at their size.
class RunningMean final : public ForwardMixer {
 public:
  RunningMean(const Scope& scope, const MixerShape& shape, const RunningMeanConfig& config)
      : ForwardMixer(RunningMeanConfig::type_name, shape),
        hidden_(config.expansion * shape.width),
        to_vg_(scope / "to_vg", {shape.width, 2 * hidden_}),
        to_out_(scope / "to_out", {hidden_, shape.width, /*bias=*/true, shape.output_gain}) {}

  // Written with the library's operations, which have their gradients.
  Var forward(const Var& x, const Context& context) const override {
    const std::vector<Var> vg = split(to_vg_(x), -1, {hidden_, hidden_});
    const Var mean = mix_with_prefix(context, shape().causal, [&](const Segments& segments, bool causal) {
      return matmul(Var(averaging_weights(segments, causal)), vg[0]);
    });
    return to_out_(sigmoid(vg[1]) * mean);
  }

 private:
  int64_t hidden_;  // E
  Linear to_vg_, to_out_;
};

}  // namespace

std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const RunningMeanConfig& config) {
  return std::make_unique<RunningMean>(scope, shape, config);
}

}  // namespace capstan::CAPSTAN_PRECISION
