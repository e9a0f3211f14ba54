// The scales of gated attention's logits, per kernel and normaliser. A checkpoint needs those it was trained with:
// tests/nn/systems/gated/test_weighting.cpp.
#include "nn/systems/gated/weighting.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.hpp"

namespace capstan::CAPSTAN_PRECISION {

KernelScales kernel_scales(const GatedKernelConfig& config, const GatedKernelShape& shape, double count) {
  const char* const problem = kernel_problem(config);
  check(problem == nullptr, "gated kernel: {}", problem == nullptr ? "" : problem);
  const double n = config.normaliser == Normaliser::paper ? static_cast<double>(shape.constant) : count;
  if (config.logits == LogitForm::length) return {1 / n, 1};
  return {1 / std::sqrt(static_cast<double>(shape.key_dim)), config.kernel == AttentionKernel::softmax ? 1 : 1 / n};
}

AttentionOptions gated_attention_options(const GatedKernelConfig& config, const GatedKernelShape& shape,
                                         const Segments& segments, int64_t past) {
  AttentionOptions options;
  options.kernel = config.kernel;
  options.causal = shape.causal;
  options.chunk = shape.chunk;
  const int64_t counted_in = config.normaliser == Normaliser::document ? 0 : shape.chunk;
  const Array counts = visible_counts(segments, shape.causal, counted_in, past);
  const auto per_query = [&](double KernelScales::*factor) {
    Array factors(counts.shape());
    real* const out = factors.mutable_data();
    for (int64_t i = 0; i < counts.size(); ++i)
      out[i] = static_cast<real>(kernel_scales(config, shape, std::max(static_cast<double>(counts[i]), 1.0)).*factor);
    return factors;
  };
  // Every scale is monotone in the number of keys: one that is the same for 1 and for infinitely many is constant.
  const KernelScales few = kernel_scales(config, shape, 1),
                     many = kernel_scales(config, shape, std::numeric_limits<double>::infinity());
  if (few.logit == many.logit)
    options.scale = few.logit;
  else
    options.row_scale = per_query(&KernelScales::logit);
  if (few.output != 1 || many.output != 1) options.output_scale = per_query(&KernelScales::output);
  return options;
}

}  // namespace capstan::CAPSTAN_PRECISION
