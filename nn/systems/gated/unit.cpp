// project() and step_project() compute the same, as ops and for a step of decoding from packed weights:
// tests/models/test_decode.cpp. The initial values of FLASH's global part are chosen in nn/systems/flash/mixer.cpp.
#include "nn/systems/gated/unit.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/fused/rotary_tables.hpp"
#include "core/ops/math.hpp"
#include "nn/systems/gated/gated_linear.hpp"
#include "nn/systems/gated/kernels/passes.hpp"
#include "nn/systems/gated/op.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

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

/// The position bias that the unit's configuration asks for.
RelativeBiasConfig bias_config(const GatedUnitConfig& config, const GatedUnitShape& unit) {
  RelativeBiasConfig bias;
  bias.kind = config.position_bias;
  bias.max_length = unit.positions;
  bias.key_dim = config.key_dim;
  bias.rotary = config.rotary.options();
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
  ParamOptions uvz;
  uvz.stacked = {hidden_, hidden_, config.key_dim};
  weight_ = (scope / "to_uvz").param("weight", {2 * hidden_ + config.key_dim, width_}, init::lecun_normal(), uvz);
  if (config.bias) bias_ = (scope / "to_uvz").param("bias", {weight_.dim(0)}, init::zeros(), vector);
  gain_ = scope.param("gain", {static_cast<int64_t>(unit.gains.size()), config.key_dim}, rows_of(unit.gains), vector);
  offset_ = scope.param("offset", gain_.shape(), init::zeros(), vector);
  to_out_ = std::make_unique<Linear>(scope / "to_out", LinearConfig{hidden_, width_, config.bias, shape.output_gain});
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

GatedUnit::StepParts GatedUnit::step_project(const Array& x, const Ids& positions, DecodeContext& decode) const {
  const int64_t batch = x.dim(0), key_dim = config_.key_dim, count = gain_.dim(0);
  StepParts parts{decode.linear(x, weight_, bias_, Activation::silu), Array(Shape{count, batch, key_dim}), hidden_};
  Array z(Shape{batch, key_dim});
  for (int64_t row = 0; row < batch; ++row)
    std::copy_n(parts.value(row) + hidden_, key_dim, z.mutable_data() + row * key_dim);
  kernels::OffsetScalePass pass{z.data(),
                                gain_.value().data(),
                                offset_.value().data(),
                                count,
                                {batch, 1, key_dim, 0, false, nullptr, nullptr, nullptr}};
  if (config_.rotary.enabled) {
    const RotaryOptions turn = config_.rotary.options();
    const int64_t pairs = rotary_pairs(turn, key_dim);
    const RotaryTables& tables = decode.rotary(positions, pairs, turn.base);
    pass.turn = {batch,
                 1,
                 key_dim,
                 pairs,
                 turn.pairs == RotaryPairs::interleaved,
                 tables.cosine.data(),
                 tables.sine.data(),
                 tables.rows.data()};
  }
  std::vector<real*> outs;
  for (int64_t view = 0; view < count; ++view) outs.push_back(parts.views.mutable_data() + view * batch * key_dim);
  kernels::offset_scale(pass, outs.data());
  return parts;
}

AttentionOptions GatedUnit::attention_options(const Segments& segments, bool causal, int64_t past) const {
  GatedKernelShape shape = shape_.attention;
  shape.causal = causal;
  AttentionOptions options = gated_attention_options(config_, shape, segments, past);
  options.bf16 = in_bf16();
  return options;
}

}  // namespace capstan::CAPSTAN_PRECISION
