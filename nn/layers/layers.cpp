// The layers, and what they tell optimizers of their parameters: weights decay, biases and gains do not. A weight whose
// rows are tokens or classes is a table; one that stacks several matrices lists their rows, for optimizers that treat
// matrices as a whole (Muon). tests/nn/layers/test_layers.cpp.
#include "nn/layers/layers.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <vector>

#include "core/base/math.hpp"
#include "core/fused/bag.hpp"
#include "core/fused/norm.hpp"
#include "core/kernels/activation.hpp"
#include "core/ops/ops.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

ParamOptions table_options(bool decay, bool table = true) {
  ParamOptions options{decay};
  options.table = table;
  return options;
}

ParamOptions weight_options(const LinearConfig& config) {
  ParamOptions options = table_options(/*decay=*/true, config.output);
  options.stacked = config.stacked;
  return options;
}

ParamOptions embedding_options(const EmbeddingConfig& config) {
  ParamOptions options = table_options(config.decay);
  options.by_rows = config.by_rows;
  return options;
}

}  // namespace

Linear::Linear(const Scope& scope, const LinearConfig& config)
    : weight_(scope.param("weight", {config.out, config.in}, init::lecun_normal(config.init_gain),
                          weight_options(config))) {
  if (config.bias) bias_ = scope.param("bias", {config.out}, init::zeros(), {/*decay=*/false});
}

Embedding::Embedding(const Scope& scope, const EmbeddingConfig& config)
    : weight_(
          scope.param("weight", {config.count, config.width}, init::normal(config.stddev), embedding_options(config))),
      by_rows_(config.by_rows) {}

Var Embedding::operator()(const Ids& ids) const {
  if (!by_rows_) return embedding(weight_, ids);
  Bags bags;  // of one id each
  for (int64_t i = 0; i < ids.size(); ++i) {
    bags.ids.push_back(ids.data()[i]);
    bags.close(1);
  }
  return reshape(embedding_bag(weight_, std::move(bags)), ids.shape().append(weight_.dim(1)).to_vector());
}

Norm::Norm(const Scope& scope, const NormConfig& config, int64_t width) : config_(config) {
  if (config.type == NormKind::none) return;
  const Shape shape{config.type == NormKind::scale ? 1 : width};
  gain_ = scope.param("gain", shape, init::ones(), {/*decay=*/false});
  if (config.type == NormKind::layer) bias_ = scope.param("bias", shape, init::zeros(), {/*decay=*/false});
}

Var Norm::operator()(const Var& x) const {
  switch (config_.type) {
    case NormKind::layer:
      return layer_norm(x, gain_, bias_, config_.eps);
    case NormKind::rms:
      return rms_norm(x, gain_, config_.eps);
    case NormKind::scale:
      return scale_norm(x, gain_, config_.eps);
    case NormKind::none:
      return x;
  }
  throw std::logic_error("norm: unknown type");
}

Var Dropout::operator()(const Var& x, const Context& context) const {
  return !context.training || rate_ == 0 ? x : dropout(x, {rate_, key_, context.step, context.examples});
}

Array sinusoidal_positions(const Ids& positions, int64_t width, SinusoidOrder order) {
  Array table(positions.shape().append(width));
  real* const out = table.mutable_data();
  const int64_t half = (width + 1) / 2;
  std::vector<double> frequencies(static_cast<size_t>(half));
  for (size_t pair = 0; pair < frequencies.size(); ++pair)
    frequencies[pair] = math::pow(10000.0, -static_cast<double>(2 * pair) / static_cast<double>(width));
  std::unordered_map<int32_t, int64_t> known;  // where a position is already: the rows of a batch have the same ones
  for (int64_t i = 0; i < positions.size(); ++i) {
    const auto [first, is_new] = known.emplace(positions[i], i);
    if (!is_new) {
      std::copy_n(out + first->second * width, width, out + i * width);
      continue;
    }
    for (int64_t c = 0; c < width; ++c) {
      const bool interleaved = order == SinusoidOrder::interleaved, sine = interleaved ? c % 2 == 0 : c < half;
      const int64_t pair = interleaved ? c / 2 : sine ? c : c - half;
      const double angle = positions[i] * frequencies[static_cast<size_t>(pair)];
      out[i * width + c] = static_cast<real>(sine ? math::sin(angle) : math::cos(angle));
    }
  }
  return table;
}

}  // namespace capstan::CAPSTAN_PRECISION
