#include "nn/systems/aft/mixer.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/ops/math.hpp"
#include "core/ops/reduce.hpp"
#include "core/ops/shape.hpp"
#include "nn/mixer/prefix.hpp"
#include "nn/systems/aft/composed.hpp"
#include "nn/systems/aft/op.hpp"

namespace capstan::CAPSTAN_PRECISION {

Aft::Aft(const Scope& scope, const MixerShape& shape, const AftProjections& projections, Bias bias, int64_t window,
         int64_t heads)
    : shape_(shape),
      bias_(bias),
      inner_(projections.inner > 0 ? projections.inner : shape.width),
      window_(window),
      heads_(heads),
      keys_(heads > 0 ? heads : inner_) {
  check(inner_ % keys_ == 0, "aft: width {} is not a multiple of {} heads", inner_, keys_);
  check(inner_ == shape.width || projections.output_projection,
        "aft: an inner width of {} in a model of width {} needs the output projection", inner_, shape.width);
  const ParamOptions vector{/*decay=*/false}, gauge{/*decay=*/false, /*gauge=*/true};
  ParamOptions qkv;
  qkv.stacked = {inner_, keys_, inner_};
  qkv_weight_ = (scope / "to_qkv").param("weight", {stride(), shape.width}, init::lecun_normal(), qkv);
  if (projections.bias) {
    query_bias_ = scope.param("query_bias", {inner_}, init::zeros(), vector);
    value_bias_ = scope.param("value_bias", {inner_}, init::zeros(), vector);
  }
  if (projections.key_bias) key_bias_ = scope.param("key_bias", {keys_}, init::zeros(), gauge);
  if (projections.output_projection)
    to_out_ = std::make_unique<Linear>(scope / "to_out",
                                       LinearConfig{inner_, shape.width, projections.bias, shape.output_gain});
}

Aft::Aft(const Scope& scope, const MixerShape& shape, const AftSimpleConfig& config)
    : Aft(scope, shape, config, Bias::none, 0, 0) {}

Aft::Aft(const Scope& scope, const MixerShape& shape, const AftPositions& config, int64_t window)
    : Aft(scope, shape, config, config.position_bias == PositionBias::dense ? Bias::dense : Bias::factorised, window,
          0) {
  check(shape_.max_length > 0, "aft: a position bias needs max_length > 0");
  const auto param = [&](const char* name, int64_t columns) {
    return scope.param(name, {shape_.max_length, columns}, init::normal(config.position_stddev), {/*decay=*/false});
  };
  if (bias_ == Bias::dense) {
    position_bias_ = param("position_bias", shape_.max_length);
  } else {
    position_u_ = param("position_u", config.rank);
    position_v_ = param("position_v", config.rank);
  }
}

Aft::Aft(const Scope& scope, const MixerShape& shape, const AftConvConfig& config)
    : Aft(scope, shape, config, Bias::taps, config.window, config.heads) {
  const ParamOptions vector{/*decay=*/false};
  kernel_eps_ = config.kernel_eps;
  kernel_ = scope.param("kernel", {heads_, shape.causal ? window_ : 2 * window_ - 1}, init::normal(1), vector);
  kernel_gain_ = scope.param("kernel_gain", {heads_}, init::zeros(), vector);
  kernel_bias_ = scope.param("kernel_bias", {heads_}, init::zeros(), vector);
}

Var Aft::packed_bias() const {
  if (!query_bias_ && !key_bias_) return Var();
  const auto part = [](const Var& bias, int64_t size) { return bias ? bias : Var(Array::zeros(Shape{size})); };
  return concatenate({part(query_bias_, inner_), part(key_bias_, keys_), part(value_bias_, inner_)}, 0);
}

Var Aft::taps() const {
  const Var centred = kernel_ - mean(kernel_, {1}, keep_dims);
  const Var deviation = sqrt(mean(square(centred), {1}, keep_dims) + kernel_eps_);
  const Var gain = reshape(kernel_gain_, {heads_, 1}), bias = reshape(kernel_bias_, {heads_, 1});
  return gain * centred / deviation + bias;
}

Var Aft::mix(const Var& qkv, const Segments& segments, bool causal, const AftPast& past) const {
  const AftOptions options{0, past};
  switch (bias_) {
    case Bias::none:
      return aft_simple(qkv, segments, causal);
    case Bias::factorised:
      return aft_factorised(qkv, position_u_, position_v_, segments, causal, window_, options);
    case Bias::dense:
      return aft_dense(qkv, position_bias_, segments, causal, window_, options);
    case Bias::taps:
      return aft_conv(qkv, taps(), segments, causal, options);
  }
  throw std::logic_error("aft: unknown position bias");
}

Var Aft::forward(const Var& x, const Context& context) const {
  const Var qkv = project(x);
  return output(mix_with_prefix(context, shape_.causal,
                                [&](const Segments& segments, bool causal) { return mix(qkv, segments, causal); }));
}

int64_t Aft::shown_positions(int64_t longest) const {
  constexpr int64_t least = 32;  // a smaller picture shows no shape
  if (bias_ == Bias::taps) return std::min(longest, std::max(least, 3 * window_));
  const int64_t known = std::min(longest, shape_.max_length);
  return window_ == 0 ? known : std::min(known, std::max(least, 4 * window_));  // 0 outside the window
}

Array Aft::position_bias(int64_t longest) const {
  const int64_t length = shown_positions(longest);
  const Segments document = Segments::full(1, length);
  const Shape one_head{1, length, length};
  switch (bias_) {
    case Bias::none:
      return {};
    case Bias::factorised:
      return aft_factorised_bias(position_u_, position_v_, document, window_).value().reshape(one_head);
    case Bias::dense:
      return aft_dense_bias(position_bias_, document, window_).value().reshape(one_head);
    case Bias::taps:
      return aft_conv_bias(taps(), document, shape_.causal).value().reshape(Shape{heads_, length, length});
  }
  throw std::logic_error("aft: unknown position bias");
}

int64_t Aft::cached_tokens() const {
  if (bias_ == Bias::none) return 0;
  if (bias_ == Bias::taps) return window_;
  return window_ == 0 ? shape_.max_length : std::min(window_, shape_.max_length);
}

MixerCost Aft::cost(int64_t length) const {
  const double width = static_cast<double>(inner_), keys = static_cast<double>(keys_), t = static_cast<double>(length);
  double saved = 2 * width + keys + (to_out_ ? width : 0);  // q|k|v, and what to_out reads
  if (bias_ == Bias::none) return {0, 0, saved};
  saved += width + keys;  // R and the denominators
  const double reach = window_ == 0 ? t : std::min(t, static_cast<double>(shape_.causal ? window_ : 2 * window_ - 1));
  const double sources = window_ == 0 && shape_.causal ? reach / 2 : reach;
  const double cached = std::min(t, static_cast<double>(cached_tokens()));
  return {2 * sources * (width + keys), 2 * cached * (width + keys), saved};
}

std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const AftSimpleConfig& config) {
  return std::make_unique<Aft>(scope, shape, config);
}
std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const AftFullConfig& config) {
  return std::make_unique<Aft>(scope, shape, config, /*window=*/0);
}
std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const AftLocalConfig& config) {
  return std::make_unique<Aft>(scope, shape, config, config.window);
}
std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const AftConvConfig& config) {
  return std::make_unique<Aft>(scope, shape, config);
}

}  // namespace capstan::CAPSTAN_PRECISION
