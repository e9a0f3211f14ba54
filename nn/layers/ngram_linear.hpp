// A linear classifier over TF-IDF weighted n-grams of words and characters. Its weights are solved for, not trained in
// steps: train/linear/fit_linear.hpp.
#pragma once

#include <string>
#include <vector>

#include "core/autograd/var.hpp"
#include "nn/layers/ngram_linear_config.hpp"
#include "nn/layers/text_ngrams.hpp"
#include "nn/params/scope.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// y = b + sum over blocks of x W,  x[f] = c(count of f) scale[f] / |block|,  c(n) = 1 + ln n. A text has two blocks,
/// its n-grams of words and those of characters (count_ngrams); each has unit norm. Buckets with scale 0 are left out: no
/// n-gram of the training texts is there. Constants scale (buckets), weight (buckets, C) and bias (C), all zero at first.
class NgramLinear {
 public:
  /// config.buckets 0 stands for the least number, 16.
  NgramLinear(const Scope& scope, const NgramLinearConfig& config, int64_t classes);

  /// The logits of a text are added to out (C).
  void add_logits(std::string_view text, real* out) const;

  const NgramLinearConfig& config() const { return config_; }
  NgramOrders orders() const { return {config_.words, config_.characters, config_.text_ends}; }
  int64_t buckets() const { return scale_.size(); }
  int64_t classes() const { return bias_.size(); }

 private:
  void add_block(const std::vector<NgramCount>& counts, double* sums) const;

  NgramLinearConfig config_;
  int bits_;
  Var scale_, weight_, bias_;
};

}  // namespace capstan::CAPSTAN_PRECISION
