#include "nn/mixers/gau.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/ops_attention.hpp"
#include "core/ops_gated.hpp"
#include "core/ops_math.hpp"

CAPSTAN_BEGIN
namespace {

constexpr double paper_stddev = 0.02;

int64_t hidden_width(double expansion, int64_t width) {
  return std::max<int64_t>(1, std::llround(expansion * static_cast<double>(width)));
}

RelativeBiasConfig bias_config(const GauConfig& config, const MixerShape& shape) {
  RelativeBiasConfig bias;
  bias.kind = config.position_bias;
  bias.max_length = shape.max_length;
  bias.key_dim = config.key_dim;
  bias.causal = shape.causal;
  bias.t5_scale = config.t5_scale > 0 ? config.t5_scale : std::sqrt(static_cast<double>(config.key_dim));
  bias.rotary = {config.rotary.base, 0, config.rotary.pairs};
  return bias;
}

}  // namespace

Gau::Gau(const Scope& scope, const MixerShape& shape, const GauConfig& config)
    : shape_(shape),
      config_(config),
      kernel_shape_{config.key_dim, shape.causal, config.paper_length},
      hidden_(hidden_width(config.expansion, shape.width)),
      relative_bias_(scope / "relative_bias", bias_config(config, shape)) {
  kernel_scales(config, kernel_shape_, 1);  // throws for combinations that do not exist
  if (config.rotary.enabled) rotary_pairs(config.rotary.options(), config.key_dim);
  const ParamOptions vector{/*decay=*/false};
  const bool paper = config.init == GatedInit::paper;
  const Init matrices = paper ? init::normal(paper_stddev) : init::lecun_normal();
  weight_ = (scope / "to_uvz").param("weight", {2 * hidden_ + config.key_dim, shape.width}, matrices);
  if (config.bias) bias_ = (scope / "to_uvz").param("bias", {weight_.dim(0)}, init::zeros(), vector);
  gain_ = scope.param("gain", {2, config.key_dim}, paper ? init::normal(paper_stddev) : init::ones(), vector);
  offset_ = scope.param("offset", {2, config.key_dim}, init::zeros(), vector);
  // Linear starts with N(0, gain^2 / in).
  const double out_gain = paper ? paper_stddev * std::sqrt(static_cast<double>(hidden_)) : shape.output_gain;
  to_out_ = std::make_unique<Linear>(scope / "to_out", LinearConfig{hidden_, shape.width, config.bias, out_gain});
}

Gau::Parts Gau::project(const Var& x, const Ids& positions) const {
  check(x.rank() == 3, "gau: x must be (B, T, {}), got shape {}", shape_.width, x.shape());
  const std::vector<Var> parts = split_silu(linear(x, weight_, bias_), {hidden_, hidden_, config_.key_dim});
  const std::optional<RotaryOptions> turn =
      config_.rotary.enabled ? std::optional<RotaryOptions>(config_.rotary.options()) : std::nullopt;
  const std::vector<Var> views = offset_scale(parts[2], gain_, offset_, positions, turn);
  return {parts[0], parts[1], views[0], views[1]};
}

Var Gau::scaled_bias(int64_t length) const {
  const Var bias = relative_bias_.for_length(length);
  const double factor = kernel_scales(config_, kernel_shape_, 1).bias;
  return !bias || factor == 1 ? bias : bias * factor;
}

Var Gau::attend(const Parts& parts, const Segments& segments) const {
  const AttentionOptions options = gated_attention_options(config_, kernel_shape_, segments);
  return attention(parts.query, parts.key, parts.value, scaled_bias(segments.longest()), segments, options);
}

Var Gau::output(const Var& gate, const Var& attended) const { return (*to_out_)(gate * attended); }

Var Gau::forward(const Var& x, const Context& context) const {
  const Parts parts = project(x, context.segments.positions());
  return output(parts.gate, attend(parts, context.segments));
}

MixerCost Gau::cost(int64_t length) const {
  const double hidden = static_cast<double>(hidden_), key = static_cast<double>(config_.key_dim),
               t = static_cast<double>(length);
  const double seen = shape_.causal ? t / 2 : t;
  // The packed projection; u, v, attended and gated values; z, q and k.
  return {2 * seen * (hidden + key), 2 * t * (hidden + key), 6 * hidden + 4 * key};
}

CAPSTAN_END
