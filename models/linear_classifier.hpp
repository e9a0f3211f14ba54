// A linear classifier over TF-IDF weighted n-grams of words and characters. It reads texts, not tokens, and its weights are
// solved for, not trained in steps: train/linear/fit_linear.hpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/autograd/var.hpp"
#include "models/model.hpp"
#include "nn/layers/text_ngrams.hpp"
#include "nn/params/scope.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// y = b + sum over blocks of x W,  x[f] = c(count of f) scale[f] / |block|,  c(n) = 1 + ln n. A text has two blocks,
/// its n-grams of words and those of characters (count_ngrams); each has unit norm. Buckets with scale 0 are left out: no
/// n-gram of the training texts is there. Constants linear.scale (buckets), linear.weight (buckets, C) and linear.bias
/// (C), all zero at first.
class LinearClassifier final : public Model {
 public:
  /// config.buckets 0 stands for the least number, 16. Make it, then finalize() the store of `scope`.
  LinearClassifier(const Scope& scope, const LinearClassifierConfig& config, int64_t classes);

  /// N texts -> (N, C).
  Array logits(const std::vector<std::string>& texts) const;
  /// (N, C) -> (N, C): the softmax.
  Array probabilities(const Array& logits) const;
  Array class_probabilities(const std::vector<std::string>& texts) const override {
    return probabilities(logits(texts));
  }

  const LinearClassifierConfig& config() const { return config_; }
  int64_t buckets() const { return scale_.size(); }
  int64_t classes() const { return bias_.size(); }
  ModelSummary summary(const ParamStore& store, int64_t length, DecodeStates states) const override;

 private:
  void add_block(const std::vector<NgramCount>& counts, double* sums) const;

  LinearClassifierConfig config_;
  int bits_;
  Var scale_, weight_, bias_;
};

inline std::unique_ptr<Model> make_model(const LinearClassifierConfig& config, const Scope& scope,
                                         const ModelSizes& sizes) {
  return std::make_unique<LinearClassifier>(scope, config, sizes.classes);
}

}  // namespace capstan::CAPSTAN_PRECISION
