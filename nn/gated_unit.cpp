#include "nn/gated_unit.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/ops_gated.hpp"
#include "core/ops_gated_linear.hpp"
#include "core/ops_math.hpp"

CAPSTAN_BEGIN
namespace {

constexpr double paper_stddev = 0.02;

int64_t hidden_width(double expansion, int64_t width) {
  return std::max<int64_t>(1, std::llround(expansion * static_cast<double>(width)));
}

/// Row i starts with gains[i].
Init rows_of(const std::vector<double>& gains) {
  return [gains](const Shape& shape, RandomStream&) {
    Array array(shape);
    for (int64_t row = 0; row < shape[0]; ++row)
      std::fill_n(array.mutable_data() + row * shape[1], shape[1], static_cast<real>(gains[static_cast<size_t>(row)]));
    return array;
  };
}

RelativeBiasConfig bias_config(const GatedUnitConfig& config, const GatedUnitShape& unit) {
  RelativeBiasConfig bias;
  bias.kind = config.position_bias;
  bias.max_length = unit.positions;
  bias.key_dim = config.key_dim;
  bias.causal = unit.attention.causal;
  bias.t5_scale = config.t5_scale > 0 ? config.t5_scale : std::sqrt(static_cast<double>(config.key_dim));
  bias.rotary = {config.rotary.base, 0, config.rotary.pairs};
  return bias;
}

}  // namespace

GatedUnit::GatedUnit(const Scope& scope, const MixerShape& shape, const GatedUnitConfig& config,
                     const GatedUnitShape& unit)
    : config_(config),
      shape_(unit),
      width_(shape.width),
      hidden_(hidden_width(config.expansion, shape.width)),
      relative_bias_(scope / "relative_bias", bias_config(config, unit)) {
  scales(1);  // throws for combinations that do not exist
  if (config.rotary.enabled) rotary_pairs(config.rotary.options(), config.key_dim);
  const ParamOptions vector{/*decay=*/false};
  const bool paper = config.init == GatedInit::paper;
  const Init matrices = paper ? init::normal(paper_stddev) : init::lecun_normal();
  weight_ = (scope / "to_uvz").param("weight", {2 * hidden_ + config.key_dim, width_}, matrices);
  if (config.bias) bias_ = (scope / "to_uvz").param("bias", {weight_.dim(0)}, init::zeros(), vector);
  gain_ = scope.param("gain", {static_cast<int64_t>(unit.gains.size()), config.key_dim},
                      paper ? init::normal(paper_stddev) : rows_of(unit.gains), vector);
  offset_ = scope.param("offset", gain_.shape(), init::zeros(), vector);
  // Linear starts with N(0, gain^2 / in).
  const double out_gain = paper ? paper_stddev * std::sqrt(static_cast<double>(hidden_)) : shape.output_gain;
  to_out_ = std::make_unique<Linear>(scope / "to_out", LinearConfig{hidden_, width_, config.bias, out_gain});
}

GatedUnit::Parts GatedUnit::project(const Var& x, const Ids& positions) const {
  check(x.rank() == 3, "gated_unit: x must be (B, T, {}), got shape {}", width_, x.shape());
  const std::vector<Var> parts = split_silu(linear(x, weight_, bias_), {hidden_, hidden_, config_.key_dim});
  const std::optional<RotaryOptions> turn =
      config_.rotary.enabled ? std::optional<RotaryOptions>(config_.rotary.options()) : std::nullopt;
  return {parts[0], parts[1], offset_scale(parts[2], gain_, offset_, positions, turn)};
}

Var GatedUnit::output(const Var& gate, const Var& mixed) const {
  return gated_linear(gate, mixed, to_out_->weight(), to_out_->bias());
}

Var GatedUnit::bias(int64_t length) const {
  const Var table = relative_bias_.for_length(length);
  const double factor = scales(1).bias;
  return !table || factor == 1 ? table : table * factor;
}

CAPSTAN_END
