#include "models/linear_classifier.hpp"

#include <algorithm>
#include <cmath>

#include "core/ops/softmax.hpp"
#include "models/summary.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

ParamOptions constant() {
  ParamOptions options;
  options.decay = false;
  options.constant = true;
  return options;
}

constexpr int64_t least_buckets = 16;

}  // namespace

LinearClassifier::LinearClassifier(const Scope& scope, const LinearClassifierConfig& config, int64_t classes)
    : config_(config),
      bits_(bits_of(std::max(config.buckets, least_buckets))),
      scale_(scope.param("linear.scale", {int64_t{1} << bits_}, init::zeros(), constant())),
      weight_(scope.param("linear.weight", {int64_t{1} << bits_, classes}, init::zeros(), constant())),
      bias_(scope.param("linear.bias", {classes}, init::zeros(), constant())) {}

void LinearClassifier::add_block(const std::vector<NgramCount>& counts, double* sums) const {
  const real *const scale = scale_.value().data(), *const weight = weight_.value().data();
  const int64_t count = classes();
  std::vector<double> block(static_cast<size_t>(count), 0);
  double squares = 0;
  for (const NgramCount& entry : counts) {
    const double x = static_cast<double>(count_weight(entry.count())) * static_cast<double>(scale[entry.bucket()]);
    if (x == 0) continue;
    squares += x * x;
    const real* const row = weight + int64_t{entry.bucket()} * count;
    for (int64_t c = 0; c < count; ++c) block[static_cast<size_t>(c)] += x * static_cast<double>(row[c]);
  }
  if (squares == 0) return;
  for (int64_t c = 0; c < count; ++c) sums[c] += block[static_cast<size_t>(c)] / std::sqrt(squares);
}

Array LinearClassifier::logits(const std::vector<std::string>& texts) const {
  Array logits(Shape{static_cast<int64_t>(texts.size()), classes()});
  real* out = logits.mutable_data();
  for (const std::string& text : texts) {
    const TextNgrams found = count_ngrams(text, {config_.words, config_.characters, config_.text_ends}, bits_);
    std::vector<double> sums(static_cast<size_t>(classes()));
    std::copy_n(bias_.value().data(), classes(), sums.begin());
    add_block(found.words, sums.data());
    add_block(found.characters, sums.data());
    out = std::transform(sums.begin(), sums.end(), out, [](double sum) { return static_cast<real>(sum); });
  }
  return logits;
}

Array LinearClassifier::probabilities(const Array& logits) const { return softmax(Var(logits)).value(); }

/// A row of weights per n-gram, of which a token has about one for each length.
ModelSummary LinearClassifier::summary(const ParamStore& store, int64_t length, DecodeStates) const {
  ModelSummary summary;
  summary.length = length;
  for (const Param& param : store.params()) summary.frozen += param.frozen ? param.var.size() : 0;
  LayerSummary layer;
  layer.name = "linear";
  layer.parameters = store.count();
  const size_t lengths = config().words.size() + config().characters.size();
  layer.flops = 2 * static_cast<double>(lengths) * static_cast<double>(classes());
  summary.layers.push_back(layer);
  return summary;
}

}  // namespace capstan::CAPSTAN_PRECISION
