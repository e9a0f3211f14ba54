// Cross-entropy with label smoothing: the loss of a text classifier unless another is named
// (models/losses/loss_config.hpp). tests/models/test_classifier.cpp and gradcheck_models.cpp hold the losses.
#pragma once

#include "core/array/batch.hpp"
#include "core/config/schema.hpp"
#include "core/fused/loss.hpp"
#include "models/losses/loss_input.hpp"

namespace capstan {

struct CrossEntropyConfig {
  static constexpr const char* type_name = "cross-entropy";
  double label_smoothing = 0;
};
template <class Fields>
void describe(Fields& f, CrossEntropyConfig& c) {
  f("label_smoothing", c.label_smoothing, between_below(0, 1), "share of the target that is spread over all classes");
}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

/// -sum_c t_c log p_c, t = (1 - s) y + s / C (Szegedy et al. 2016, section 7); multi-label the binary cross-entropies,
/// t = (1 - s) y + s / 2 (core/fused/loss.hpp).
inline Var loss_sum(const CrossEntropyConfig& config, const LossInput& input) {
  if (input.multi_label)
    return sigmoid_cross_entropy(input.logits, input.labels, {config.label_smoothing, input.class_weights});
  CrossEntropyOptions options;
  options.ignored = ignored_target;
  options.label_smoothing = config.label_smoothing;
  options.class_weights = input.class_weights;
  return softmax_cross_entropy(input.logits, input.labels, options).sum;
}

}  // namespace capstan::CAPSTAN_PRECISION
